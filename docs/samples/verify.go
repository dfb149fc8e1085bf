package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const toleranceS = 300

var unixTime = regexp.MustCompile(`^[0-9]{1,12}$`)

// Verify returns true for a genuine, recent request; body holds the raw bytes.
func Verify(secret string, headers http.Header, body []byte) bool {
	if key := strings.TrimSpace(secret); key == "" || key == "whsec_" {
		return false // not set: anyone could sign with it
	}
	var times, given []string
	if signature := headers.Get("X-Gateway-Signature"); signature != "" { // t=...,v1=...
		for _, part := range strings.Split(signature, ",") {
			key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			if key == "t" {
				times = append(times, value)
			} else if key == "v1" {
				given = append(given, value)
			}
		}
	} else if signature = headers.Get("X-Recording-Signature"); strings.HasPrefix(signature, "sha256=") {
		times, given = []string{headers.Get("X-Recording-Timestamp")}, []string{signature[7:]}
	}
	if len(times) != 1 || !unixTime.MatchString(times[0]) {
		return false
	}
	signed, _ := strconv.ParseInt(times[0], 10, 64)
	if age := time.Now().Unix() - signed; age > toleranceS || age < -toleranceS {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(times[0] + "."))
	mac.Write(body)
	expected := []byte(hex.EncodeToString(mac.Sum(nil)))
	fits := false
	for _, value := range given {
		fits = hmac.Equal(expected, []byte(value)) || fits
	}
	return fits
}

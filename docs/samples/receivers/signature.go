// Go: the signature of a request, for receiver.go and publish.go.
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

const tolerance = 300 // seconds

var unixTime = regexp.MustCompile(`^[0-9]{1,12}$`)

// Verify reads the headers of recording and of the gateway.
func Verify(secret string, headers http.Header, body []byte, now time.Time) bool {
	if key := strings.TrimSpace(secret); key == "" || key == "whsec_" {
		return false // not set: anyone could sign with it
	}
	timestamp := headers.Get("X-Recording-Timestamp")
	digests := []string{strings.TrimPrefix(headers.Get("X-Recording-Signature"), "sha256=")}
	if signature := headers.Get("X-Gateway-Signature"); signature != "" {
		timestamp, digests = "", nil
		for _, part := range strings.Split(signature, ",") {
			key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			if key == "t" {
				timestamp = value
			} else if key == "v1" {
				digests = append(digests, value)
			}
		}
	}
	if !unixTime.MatchString(timestamp) {
		return false
	}
	signed, _ := strconv.ParseInt(timestamp, 10, 64)
	if age := now.Unix() - signed; age > tolerance || age < -tolerance {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	expected := []byte(hex.EncodeToString(mac.Sum(nil)))
	fits := false
	for _, digest := range digests {
		fits = hmac.Equal(expected, []byte(digest)) || fits
	}
	return fits
}

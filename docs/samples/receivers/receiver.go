// Go: `go run receiver.go`
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log"
	"net/http"
	"os"
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

func receive(response http.ResponseWriter, request *http.Request) {
	// Deliveries can exceed 1 MiB.
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 4<<20))
	if err != nil {
		http.Error(response, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if !Verify(os.Getenv("SIGNPOST_SECRET"), request.Header, body, time.Now()) {
		http.Error(response, "invalid signature", http.StatusUnauthorized)
		return
	}
	// INSERT INTO inbox … ON CONFLICT (id) DO NOTHING
	response.WriteHeader(http.StatusNoContent)
}

func main() {
	http.HandleFunc("/hook", receive)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

// Go: `go run receiver.go signature.go`
package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

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

// Publish an event, and verify what arrives: `go run publish.go signature.go`
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

type object map[string]any

// call sends a request to Signpost, and reads its response into result.
func call(method, path string, body object, result any) {
	data, _ := json.Marshal(body)
	request, err := http.NewRequest(method, os.Getenv("SIGNPOST_URL")+path, bytes.NewReader(data))
	if err != nil {
		log.Fatal(err)
	}
	if body == nil {
		request.Body, request.ContentLength = http.NoBody, 0
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("SIGNPOST_KEY"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		log.Fatal(response.Status, string(answer), err)
	}
	if result != nil {
		if err := json.Unmarshal(answer, result); err != nil {
			log.Fatal(err)
		}
	}
}

func main() {
	address := "127.0.0.1:" + os.Getenv("PORT")
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	var subscription struct{ ID, Secret string }
	call("POST", "/v1/webhooks/subscriptions", object{
		"url": "http://" + address + "/hook", "event_types": []string{"drift.detected"},
	}, &subscription)
	events := make(chan string, 1)
	go http.Serve(listener, http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var event struct{ ID string }
		if err != nil || !Verify(subscription.Secret, request.Header, body, time.Now()) ||
			json.Unmarshal(body, &event) != nil {
			http.Error(response, "invalid signature", http.StatusUnauthorized)
			return
		}
		response.WriteHeader(http.StatusNoContent)
		events <- event.ID
	}))
	var published struct{ ID string }
	call("POST", "/v1/events", object{"type": "drift.detected", "data": object{
		"subject": "embeddings", "metric": "psi", "value": 0.31, "threshold": 0.2,
	}}, &published)
	for id := range events {
		if id == published.ID {
			break
		}
	}
	fmt.Println("verified", published.ID)
	call("DELETE", "/v1/webhooks/subscriptions/"+subscription.ID, nil, nil)
}

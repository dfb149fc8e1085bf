package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var fields [3][]byte
		for i, field := range strings.Split(lines.Text(), " ") {
			fields[i], _ = hex.DecodeString(field)
		}
		headers := http.Header{}
		for _, one := range strings.Split(string(fields[1]), "\n") {
			name, value, _ := strings.Cut(one, ": ")
			headers.Set(name, value)
		}
		if Verify(string(fields[0]), headers, fields[2]) {
			fmt.Println(1)
		} else {
			fmt.Println(0)
		}
	}
}

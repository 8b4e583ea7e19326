// The caller's program: calls the service, and prints the results. The README has its options.
package main

import (
	"flag"
	"os"

	"crosslanguage/modes"
	"crosslanguage/service"
)

func main() {
	var options service.Options
	flag.StringVar(&options.AeronDir, "aeron-dir", os.Getenv("AERON_DIR"), "directory of a running media driver")
	flag.StringVar(&options.RequestChannel, "request-channel", service.RequestChannel, "channel of requests")
	flag.StringVar(&options.ResponseChannel, "response-channel", service.ResponseChannel, "channel of responses")
	flag.StringVar(&options.Idle, "idle", "backoff", "action while waiting: spin, yield or backoff")
	mode := modes.Parse()
	options.Timeout = mode.Timeout
	mode.Run(func() (modes.Connection, error) { return service.Connect(options, modes.Square) })
}

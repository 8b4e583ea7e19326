// The in-process caller's program: calls the service in its own process through cgo.
package main

import (
	"flag"
	"fmt"
	"os"

	"crosslanguage/modes"
	"crosslanguage/service"
)

func main() {
	var measuring modes.Measuring
	encodingName := flag.String("encoding", "binary", "encoding of arguments and results: binary or json")
	cases := flag.String("check", "", "call what each line of a file says, and print the results")
	measuring.Flags()
	flag.Parse()
	isMeasuring := measuring.Payload >= 0 || measuring.ConnectCycles > 0
	if *cases == "" && !isMeasuring {
		fmt.Fprintln(os.Stderr, "one of --check, --measure and --connect-cycles is required")
		os.Exit(2)
	}
	if err := run(*encodingName, *cases, &measuring, isMeasuring); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(encodingName, cases string, measuring *modes.Measuring, isMeasuring bool) error {
	encoding, err := service.ParseEncoding(encodingName)
	if err != nil {
		return err
	}
	connect := func() (modes.Connection, error) {
		return newSession(encoding, modes.Square), nil
	}
	if isMeasuring {
		return measuring.Run(connect)
	}
	session := newSession(encoding, modes.Square)
	defer session.Close()
	return modes.Check(session, cases)
}

// The caller's program: calls the service, and prints the results. The README has its options.
package main

import (
	"bufio"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"time"

	"crosslanguage/modes"
	"crosslanguage/service"
)

func main() {
	var options service.Options
	var measuring modes.Measuring
	flag.StringVar(&options.AeronDir, "aeron-dir", os.Getenv("AERON_DIR"), "directory of a running media driver")
	flag.StringVar(&options.RequestChannel, "request-channel", service.RequestChannel, "channel of requests")
	flag.StringVar(&options.ResponseChannel, "response-channel", service.ResponseChannel, "channel of responses")
	flag.StringVar(&options.Idle, "idle", "backoff", "action while waiting: spin, yield, sleep-ns, backoff or noop")
	encoding := flag.String("encoding", "binary", "encoding of arguments and results: binary or json")
	timeout := flag.Int64("timeout-ms", 5000, "longest time of a call, in milliseconds")
	cases := flag.String("check", "", "call what each line of a file says, and print the results")
	wrong := flag.String("wrong-input", "", "send the bytes of each line of a file, and print each status")
	isEndless := flag.Bool("endless", false, "call until a call fails, and print that failure")
	measuring.Flags()
	flag.Parse()
	options.Timeout = time.Duration(*timeout) * time.Millisecond
	isMeasuring := measuring.Payload >= 0 || measuring.ConnectCycles > 0
	if *cases == "" && *wrong == "" && !isMeasuring && !*isEndless {
		fmt.Fprintln(os.Stderr,
			"one of --check, --wrong-input, --measure, --connect-cycles and --endless is required")
		os.Exit(2)
	}
	if err := run(options, *encoding, *cases, *wrong, &measuring, isMeasuring); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(
	options service.Options, encodingName, cases, wrong string, measuring *modes.Measuring, isMeasuring bool,
) error {
	encoding, err := service.ParseEncoding(encodingName)
	if err != nil {
		return err
	}
	connect := func() (modes.Connection, error) {
		caller, err := service.Connect(options, modes.Square)
		return connection{caller, encoding}, err
	}
	if isMeasuring {
		return measuring.Run(connect)
	}
	caller, err := service.Connect(options, modes.Square)
	if err != nil {
		return err
	}
	defer caller.Close()
	switch {
	case cases != "":
		return modes.Check(connection{caller, encoding}, cases)
	case wrong != "":
		return wrongInput(caller, wrong)
	default:
		return endless(caller, encoding)
	}
}

// A connection calls with one encoding.
type connection struct {
	caller   *service.Caller
	encoding service.Encoding
}

func (c connection) Call(operation service.Operation, argument any) (any, error) {
	return c.caller.Call(operation, c.encoding, argument)
}

func (c connection) Close() {
	c.caller.Close()
}

// wrongInput sends the message in LABEL HEX for each line.
func wrongInput(caller *service.Caller, path string) error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	return modes.Lines(path, func(_ int, label, text string) error {
		message, err := hex.DecodeString(text)
		if err != nil {
			return err
		}
		id, status, body, err := caller.CallRaw(message)
		if err != nil {
			return err
		}
		if status == service.OK {
			fmt.Fprintln(out, label, id, status, hex.EncodeToString(body))
		} else {
			fmt.Fprintln(out, label, id, status)
		}
		return nil
	})
}

func endless(caller *service.Caller, encoding service.Encoding) error {
	argument := make([]int64, 10_000)
	for i := range argument {
		argument[i] = int64(i)
	}
	for isFirst := true; ; isFirst = false {
		if _, err := caller.Call(service.Total, encoding, argument); err != nil {
			return err
		}
		if isFirst {
			fmt.Println("calling")
		}
	}
}

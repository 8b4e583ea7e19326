// The caller's program: calls the service, and prints the results. The README has its options.
package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"sort"
	"strings"
	"time"

	"crosslanguage/service"
)

const (
	// The greatest argument that this program's callback accepts.
	callbackLimit = 12
	// Longer results are printed as their length and hash.
	resultLimit = 120
)

func main() {
	var options service.Options
	flag.StringVar(&options.AeronDir, "aeron-dir", os.Getenv("AERON_DIR"), "directory of a running media driver")
	flag.StringVar(&options.RequestChannel, "request-channel", service.RequestChannel, "channel of requests")
	flag.StringVar(&options.ResponseChannel, "response-channel", service.ResponseChannel, "channel of responses")
	flag.StringVar(&options.Idle, "idle", "backoff", "action while waiting: spin, yield, sleep-ns, backoff or noop")
	encoding := flag.String("encoding", "binary", "encoding of arguments and results: binary or json")
	timeout := flag.Int64("timeout-ms", 5000, "longest time of a call, in milliseconds")
	cases := flag.String("check", "", "call what each line of a file says, and print the results")
	wrong := flag.String("wrong-input", "", "send the bytes of each line of a file, and print each status")
	isEndless := flag.Bool("endless", false, "call until a call fails, and print that failure")
	payload := flag.Int("measure", -1, "time calls with a text of so many bytes, 0 for no argument; print nanoseconds")
	calls := flag.Int("calls", 10_000, "calls that -measure times, after as many for warming up")
	flag.Parse()
	options.Timeout = time.Duration(*timeout) * time.Millisecond
	if *cases == "" && *wrong == "" && *payload < 0 && !*isEndless || *calls < 1 {
		fmt.Fprintln(os.Stderr, "one of --check, --wrong-input, --measure and --endless is required")
		os.Exit(2)
	}
	if err := run(options, *encoding, *cases, *wrong, *payload, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(options service.Options, encodingName, cases, wrong string, payload, calls int) error {
	encoding, err := service.ParseEncoding(encodingName)
	if err != nil {
		return err
	}
	caller, err := service.Connect(options, square)
	if err != nil {
		return err
	}
	defer caller.Close()
	switch {
	case cases != "":
		return check(caller, encoding, cases)
	case wrong != "":
		return wrongInput(caller, wrong)
	case payload >= 0:
		return measure(caller, encoding, payload, calls)
	default:
		return endless(caller, encoding)
	}
}

func square(argument int64) (int64, error) {
	if argument < 0 || argument > callbackLimit {
		return 0, fmt.Errorf("%d is not in 0 to %d", argument, callbackLimit)
	}
	return argument * argument, nil
}

// lines calls a function with number and two words of each line: the first word, and the rest.
func lines(path string, each func(number int, first, rest string) error) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		first, rest, hasBlank := strings.Cut(line, " ")
		if !hasBlank {
			return fmt.Errorf("%s:%d: a line of one word", path, i+1)
		}
		if err := each(i+1, first, rest); err != nil {
			return err
		}
	}
	return nil
}

// check calls OPERATION ARGUMENT, the argument in JSON, for each line.
func check(caller *service.Caller, encoding service.Encoding, path string) error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	return lines(path, func(number int, name, text string) error {
		operation, err := service.ParseOperation(name)
		if err != nil {
			return err
		}
		argument, err := service.ReadJSON([]byte(text), operation.Argument())
		if err != nil {
			return err
		}
		result, err := caller.Call(operation, encoding, argument)
		var failure *service.Failure
		switch {
		case errors.As(err, &failure):
			fmt.Fprintln(out, number, operation, failure.Status)
		case err != nil:
			return err
		default:
			fmt.Fprintln(out, number, operation, shortened(service.Canonical(operation.Result(), result)))
		}
		return nil
	})
}

// wrongInput sends the message in LABEL HEX for each line.
func wrongInput(caller *service.Caller, path string) error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	return lines(path, func(_ int, label, text string) error {
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

// measure prints mean, median, 95th and 99th percentile and maximum of the calls' times.
func measure(caller *service.Caller, encoding service.Encoding, payload, calls int) error {
	operation, argument := service.Ping, any(nil)
	if payload > 0 {
		operation, argument = service.Reverse, strings.Repeat("a", payload)
	}
	times := make([]int64, 0, calls)
	var sum int64
	for i := 0; i < 2*calls; i++ {
		start := time.Now()
		if _, err := caller.Call(operation, encoding, argument); err != nil {
			return err
		}
		if i >= calls {
			times = append(times, time.Since(start).Nanoseconds())
			sum += times[len(times)-1]
		}
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	at := func(percent int) int64 { return times[(calls-1)*percent/100] }
	fmt.Println(sum/int64(calls), at(50), at(95), at(99), at(100))
	return nil
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

func shortened(text string) string {
	if len(text) <= resultLimit {
		return text
	}
	hash := fnv.New64a()
	hash.Write([]byte(text))
	return fmt.Sprintf("%d bytes %016x", len(text), hash.Sum64())
}

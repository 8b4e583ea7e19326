// Package modes has the modes of a caller's program, equal over all transports: checking, measuring, connecting.
package modes

import (
	"bufio"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"crosslanguage/service"
)

// The greatest argument that a program's callback accepts.
const callbackLimit = 12

// A Connection calls a server. The error of Call is a *service.Failure, or says why there is no answer.
type Connection interface {
	Call(operation service.Operation, argument any) (any, error)
	Close()
}

// Modes has the options of the modes.
type Modes struct {
	// Timeout is the longest time of a call.
	Timeout time.Duration

	check, samples                  string
	payload, cycles, calls, callers int
	timeoutMs, warmupMs             int
}

// Parse defines the options, and reads the command line.
func Parse() *Modes {
	var m Modes
	flag.StringVar(&m.check, "check", "", "call what each line of a file says, and print the results")
	flag.IntVar(&m.payload, "measure", -1, "time calls with a text of so many bytes, 0 for no argument")
	flag.IntVar(&m.cycles, "connect-cycles", 0, "connect, ping and close so many times, and time each cycle")
	flag.IntVar(&m.timeoutMs, "timeout-ms", 5_000, "longest time of a call")
	flag.IntVar(&m.calls, "calls", 10_000, "calls that each caller of -measure times")
	flag.IntVar(&m.warmupMs, "warmup-ms", 5_000, "time of calls before these")
	flag.IntVar(&m.callers, "callers", 1, "concurrent callers of -measure, each with a connection of its own")
	flag.StringVar(&m.samples, "samples", "", "file for the times in nanoseconds, one in a line")
	flag.Parse()
	m.Timeout = time.Duration(m.timeoutMs) * time.Millisecond
	return &m
}

// Square answers callbacks: with the square of a small integer.
func Square(argument int64) (int64, error) {
	if argument < 0 || argument > callbackLimit {
		return 0, fmt.Errorf("%d is not in 0 to %d", argument, callbackLimit)
	}
	return argument * argument, nil
}

// Run runs the chosen mode, and ends the program.
func (m *Modes) Run(connect func() (Connection, error)) {
	var err error
	switch {
	case m.check != "":
		err = m.runCheck(connect)
	case m.payload >= 0:
		err = m.measure(connect)
	case m.cycles > 0:
		err = m.connectCycles(connect)
	default:
		err = errors.New("one of -check, -measure and -connect-cycles is required")
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

// runCheck calls OPERATION ARGUMENT for each line of a file, and prints the results. Bodies are hexadecimal digits.
func (m *Modes) runCheck(connect func() (Connection, error)) error {
	text, err := os.ReadFile(m.check)
	if err != nil {
		return err
	}
	connection, err := connect()
	if err != nil {
		return err
	}
	defer connection.Close()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		name, digits, _ := strings.Cut(line, " ")
		result, err := call(connection, name, digits)
		var failure *service.Failure
		if errors.As(err, &failure) {
			result = failure.Status.String()
		} else if err != nil {
			return err
		}
		fmt.Fprintln(out, result)
	}
	return nil
}

func call(connection Connection, name, digits string) (string, error) {
	operation, err := service.ParseOperation(name)
	if err != nil {
		return "", err
	}
	bytes, err := hex.DecodeString(digits)
	if err != nil {
		return "", err
	}
	argument, err := service.ReadBody(bytes, operation.Argument())
	if err != nil {
		return "", err
	}
	result, err := connection.Call(operation, argument)
	if err != nil {
		return "", err
	}
	bytes, err = service.WriteBody(nil, operation.Result(), result)
	return hex.EncodeToString(bytes), err
}

// measure times the calls of concurrent callers. A caller that fails ends the program, because the others wait for it.
func (m *Modes) measure(connect func() (Connection, error)) error {
	times := make([]int64, m.calls*m.callers)
	var ready, finished sync.WaitGroup
	begin := make(chan struct{})
	ends := make([]time.Time, m.callers)
	ready.Add(m.callers)
	finished.Add(m.callers)
	for i := range ends {
		times := times[i*m.calls : (i+1)*m.calls]
		go func() {
			defer finished.Done()
			err := m.runCaller(connect, times, func() {
				ready.Done()
				<-begin
			}, &ends[i])
			if err != nil {
				fail(err)
			}
		}()
	}
	ready.Wait()
	fmt.Println("measuring")
	start := time.Now()
	close(begin)
	finished.Wait()
	return m.report(slices.MaxFunc(ends, time.Time.Compare).Sub(start), times)
}

// runCaller connects, warms up, and after a common beginning times its calls.
func (m *Modes) runCaller(
	connect func() (Connection, error), times []int64, await func(), end *time.Time,
) error {
	connection, err := connect()
	if err != nil {
		return err
	}
	defer connection.Close()
	operation, argument, expected := service.Ping, any(nil), any(nil)
	if m.payload > 0 {
		text := []byte(strings.Repeat("abcdefghijklmnopqrstuvwxyz", m.payload/26+1)[:m.payload])
		operation, argument = service.Reverse, string(text)
		slices.Reverse(text)
		expected = string(text)
	}
	result, err := connection.Call(operation, argument)
	if err != nil {
		return err
	}
	if result != expected {
		return fmt.Errorf("%v: wrong result", operation)
	}
	for start := time.Now(); time.Since(start) < time.Duration(m.warmupMs)*time.Millisecond; {
		if _, err := connection.Call(operation, argument); err != nil {
			return err
		}
	}
	await()
	for i := range times {
		start := time.Now()
		if _, err := connection.Call(operation, argument); err != nil {
			return err
		}
		times[i] = time.Since(start).Nanoseconds()
	}
	*end = time.Now()
	return nil
}

func (m *Modes) connectCycles(connect func() (Connection, error)) error {
	times := make([]int64, m.cycles)
	begin := time.Now()
	for i := range times {
		start := time.Now()
		connection, err := connect()
		if err != nil {
			return err
		}
		_, err = connection.Call(service.Ping, nil)
		connection.Close()
		if err != nil {
			return err
		}
		times[i] = time.Since(start).Nanoseconds()
	}
	return m.report(time.Since(begin), times)
}

// report prints a line of JSON, and writes the samples.
func (m *Modes) report(elapsed time.Duration, times []int64) error {
	fmt.Printf(`{"elapsed_ns":%d,"calls":%d}`+"\n", elapsed.Nanoseconds(), len(times))
	if m.samples == "" {
		return nil
	}
	var lines strings.Builder
	for _, time := range times {
		fmt.Fprintln(&lines, time)
	}
	return os.WriteFile(m.samples, []byte(lines.String()), 0o644)
}

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

	"crosslanguage/target/protocol"

	"google.golang.org/protobuf/proto"
)

// The greatest argument that a program's callback accepts.
const callbackLimit = 12

// A Connection calls a server.
type Connection interface {
	// Call calls with a request, and returns its response, which may be a failure. Over Aeron, the
	// request gets a correlation id.
	Call(request *protocol.Request) (*protocol.Response, error)
	Close()
}

// Modes has the options of the modes.
type Modes struct {
	// Timeout is the longest time of a call.
	Timeout time.Duration

	check                           string
	payload, cycles, calls, callers int
	timeoutMs, warmupMs             int
}

// Parse defines the options, and reads the command line.
func Parse() *Modes {
	var m Modes
	flag.StringVar(&m.check, "check", "", "call with the request of each line, and print the responses")
	flag.IntVar(&m.payload, "measure", -1, "time calls with a text of so many bytes, 0 for no argument")
	flag.IntVar(&m.cycles, "connect-cycles", 0, "connect, ping and close so many times, and time each cycle")
	flag.IntVar(&m.timeoutMs, "timeout-ms", 5_000, "longest time of a call")
	flag.IntVar(&m.calls, "calls", 10_000, "calls that each caller of -measure times")
	flag.IntVar(&m.warmupMs, "warmup-ms", 5_000, "time of calls before these")
	flag.IntVar(&m.callers, "callers", 1, "concurrent callers of -measure, each with a connection of its own")
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

// runCheck calls with the request of each line, and prints the responses, in hexadecimal digits.
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
	for _, line := range strings.Fields(string(text)) {
		bytes, err := hex.DecodeString(line)
		request := &protocol.Request{}
		if err := errors.Join(err, proto.Unmarshal(bytes, request)); err != nil {
			return err
		}
		response, err := connection.Call(request)
		if err != nil {
			return err
		}
		if bytes, err = proto.Marshal(response); err != nil {
			return err
		}
		fmt.Println(hex.EncodeToString(bytes))
	}
	return nil
}

func ping() *protocol.Request {
	return &protocol.Request{Operation: &protocol.Request_Ping{Ping: &protocol.Void{}}}
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
	return report(slices.MaxFunc(ends, time.Time.Compare).Sub(start), times)
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
	request, expected := ping(), []byte{}
	if m.payload > 0 {
		expected = []byte(strings.Repeat("abcdefghijklmnopqrstuvwxyz", m.payload/26+1)[:m.payload])
		request.Operation = &protocol.Request_Reverse{Reverse: string(expected)}
		slices.Reverse(expected)
	}
	response, err := checkedCall(connection, request)
	if err != nil {
		return err
	}
	if response.GetReverse() != string(expected) {
		return errors.New("wrong result")
	}
	for start := time.Now(); time.Since(start) < time.Duration(m.warmupMs)*time.Millisecond; {
		if _, err := checkedCall(connection, request); err != nil {
			return err
		}
	}
	await()
	for i := range times {
		start := time.Now()
		if _, err := checkedCall(connection, request); err != nil {
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
		_, err = checkedCall(connection, ping())
		connection.Close()
		if err != nil {
			return err
		}
		times[i] = time.Since(start).Nanoseconds()
	}
	return report(time.Since(begin), times)
}

// checkedCall calls, and fails unless the response has the outcome of the operation.
func checkedCall(connection Connection, request *protocol.Request) (*protocol.Response, error) {
	response, err := connection.Call(request)
	if err != nil {
		return nil, err
	}
	var isRight bool
	switch request.Operation.(type) {
	case *protocol.Request_Ping:
		_, isRight = response.Outcome.(*protocol.Response_Ping)
	case *protocol.Request_Reverse:
		_, isRight = response.Outcome.(*protocol.Response_Reverse)
	}
	if isRight {
		return response, nil
	}
	if failure := response.GetFailure(); failure != nil {
		return nil, fmt.Errorf("%v: %s", failure.Status, failure.Text)
	}
	return nil, errors.New("the outcome of another operation")
}

// report prints the time of all calls, and of each, in nanoseconds. It writes the first line at
// once, because the program `measure` samples this process when that line arrives.
func report(elapsed time.Duration, times []int64) error {
	fmt.Println(elapsed.Nanoseconds())
	out := bufio.NewWriter(os.Stdout)
	for _, time := range times {
		fmt.Fprintln(out, time)
	}
	return out.Flush()
}

package modes

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"crosslanguage/service"
)

// Measuring has the options of measuring.
type Measuring struct {
	// Length of the text that is sent and returned, 0 for ping; negative if nothing is measured.
	Payload int
	// Number of connections, each with a call, to time; 0 for none.
	ConnectCycles int

	calls, warmup, callers int
	samples                string
}

// Flags defines the options on the command line.
func (m *Measuring) Flags() {
	flag.IntVar(&m.Payload, "measure", -1, "time calls with a text of so many bytes, 0 for no argument")
	flag.IntVar(&m.ConnectCycles, "connect-cycles", 0, "connect, ping and close so many times, and time each cycle")
	flag.IntVar(&m.calls, "calls", 10_000, "calls that -measure times, in each concurrent caller")
	flag.IntVar(&m.warmup, "warmup", 10_000, "calls before the timed ones, in each concurrent caller")
	flag.IntVar(&m.callers, "callers", 1, "concurrent callers of -measure, each with a connection of its own")
	flag.StringVar(&m.samples, "samples", "", "file for the times in nanoseconds, one in a line")
}

// Run measures calls or connections, and prints a line of JSON.
func (m *Measuring) Run(connect func() (Connection, error)) error {
	if m.calls < 1 || m.warmup < 0 || m.callers < 1 {
		return errors.New("-calls and -callers must be 1 or more, -warmup 0 or more")
	}
	if m.ConnectCycles > 0 {
		return m.connectCycles(connect)
	}
	type event struct {
		times []int64
		err   error
	}
	events, begin := make(chan event, 2*m.callers), make(chan struct{})
	for i := 0; i < m.callers; i++ {
		go func() {
			connection, err := connect()
			if err != nil {
				events <- event{nil, err}
				return
			}
			// After the times are sent: closing is not measured.
			defer connection.Close()
			times, err := m.caller(connection, func() {
				events <- event{}
				<-begin
			})
			events <- event{times, err}
		}()
	}
	for i := 0; i < m.callers; i++ {
		if ready := <-events; ready.err != nil {
			return ready.err
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	close(begin)
	var all []int64
	for i := 0; i < m.callers; i++ {
		finished := <-events
		if finished.err != nil {
			return finished.err
		}
		all = append(all, finished.times...)
	}
	elapsed := time.Since(start)
	runtime.ReadMemStats(&after)
	calls := float64(len(all))
	fmt.Printf(`{"elapsed_ns":%d,"calls":%d,"allocations_per_call":%.2f,"allocated_bytes_per_call":%.1f}`+"\n",
		elapsed.Nanoseconds(), len(all),
		float64(after.Mallocs-before.Mallocs)/calls, float64(after.TotalAlloc-before.TotalAlloc)/calls)
	return m.write(all)
}

// caller warms up, awaits the common beginning, and returns the times of the calls.
func (m *Measuring) caller(connection Connection, awaitBegin func()) ([]int64, error) {
	operation, argument, expected := service.Ping, any(nil), any(nil)
	if m.Payload > 0 {
		text := []byte(strings.Repeat("abcdefghijklmnopqrstuvwxyz", m.Payload/26+1)[:m.Payload])
		operation, argument = service.Reverse, string(text)
		slices.Reverse(text)
		expected = string(text)
	}
	result, err := connection.Call(operation, argument)
	if err != nil {
		return nil, err
	}
	if result != expected {
		return nil, fmt.Errorf("%v: wrong result", operation)
	}
	for i := 0; i < m.warmup; i++ {
		if _, err := connection.Call(operation, argument); err != nil {
			return nil, err
		}
	}
	times := make([]int64, m.calls)
	awaitBegin()
	for i := range times {
		start := time.Now()
		if _, err := connection.Call(operation, argument); err != nil {
			return nil, err
		}
		times[i] = time.Since(start).Nanoseconds()
	}
	return times, nil
}

func (m *Measuring) connectCycles(connect func() (Connection, error)) error {
	times := make([]int64, m.ConnectCycles)
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
	fmt.Printf(`{"elapsed_ns":%d,"calls":%d,"allocations_per_call":null,"allocated_bytes_per_call":null}`+"\n",
		time.Since(begin).Nanoseconds(), len(times))
	return m.write(times)
}

func (m *Measuring) write(times []int64) error {
	if m.samples == "" {
		return nil
	}
	file, err := os.Create(m.samples)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	for _, time := range times {
		fmt.Fprintln(out, time)
	}
	return errors.Join(out.Flush(), file.Close())
}

package modes

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"math"
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

	calls, warmupMs, countedMs, callers int
	samples                             string
}

const (
	// Calls in the first block of the warm-up.
	firstBlock = 100
	// Blocks in a row that are no faster before the warm-up ends.
	steadyBlocks = 3
	// Shortest warm-up.
	leastWarmup = 500 * time.Millisecond
	// A faster block takes less than this share of an earlier block's time for a call.
	faster = 0.95
)

// Flags defines the options on the command line.
func (m *Measuring) Flags() {
	flag.IntVar(&m.Payload, "measure", -1, "time calls with a text of so many bytes, 0 for no argument")
	flag.IntVar(&m.ConnectCycles, "connect-cycles", 0, "connect, ping and close so many times, and time each cycle")
	flag.IntVar(&m.calls, "calls", 10_000, "calls that -measure times, in each concurrent caller")
	flag.IntVar(&m.warmupMs, "warmup-ms", 6_000,
		"longest time of the calls before the timed ones, which end as soon as they become no faster")
	flag.IntVar(&m.countedMs, "counted-ms", 0,
		"time of calls after the timed ones, during which allocations are counted; 0 for none")
	flag.IntVar(&m.callers, "callers", 1, "concurrent callers of -measure, each with a connection of its own")
	flag.StringVar(&m.samples, "samples", "", "file for the times in nanoseconds, one in a line")
}

// Run measures calls or connections, and prints a line of JSON.
func (m *Measuring) Run(connect func() (Connection, error)) error {
	if m.calls < 1 || m.callers < 1 {
		return errors.New("-calls and -callers must be 1 or more")
	}
	if m.ConnectCycles > 0 {
		return m.connectCycles(connect)
	}
	callers := make([]caller, m.callers)
	events := make(chan error, m.callers)
	// Closed when the timed calls begin, when the counted ones do, and when the callers close.
	begin := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	for i := range callers {
		caller := &callers[i]
		go func() {
			events <- caller.run(m, connect, func(stage int) {
				events <- nil
				<-begin[stage]
			})
		}()
	}
	awaitStage := func() error {
		for range callers {
			if err := <-events; err != nil {
				return err
			}
		}
		return nil
	}
	if err := awaitStage(); err != nil {
		return err
	}
	start := time.Now()
	close(begin[0])
	if err := awaitStage(); err != nil {
		return err
	}
	elapsed := time.Since(start)
	if m.countedMs > 0 {
		fmt.Println("counting")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start = time.Now()
	close(begin[1])
	if err := awaitStage(); err != nil {
		return err
	}
	countedElapsed := time.Since(start)
	runtime.ReadMemStats(&after)
	close(begin[2])
	if err := awaitStage(); err != nil {
		return err
	}
	var times []int64
	warmupCalls, counted, isSteady := 0, 0, true
	for i := range callers {
		times = append(times, callers[i].times...)
		warmupCalls += callers[i].warmupCalls
		counted += callers[i].counted
		isSteady = isSteady && callers[i].isSteady
	}
	perCall := func(count uint64) string {
		if counted == 0 {
			return "null"
		}
		return fmt.Sprintf("%.2f", float64(count)/float64(counted))
	}
	fmt.Printf(`{"elapsed_ns":%d,"calls":%d,"warmup_calls":%d,"is_steady":%t,"counted_ns":%d,"counted_calls":%d,`+
		`"allocations_per_call":%s,"allocated_bytes_per_call":%s}`+"\n",
		elapsed.Nanoseconds(), len(times), warmupCalls, isSteady, countedElapsed.Nanoseconds(), counted,
		perCall(after.Mallocs-before.Mallocs), perCall(after.TotalAlloc-before.TotalAlloc))
	return m.write(times)
}

// A caller is a concurrent caller, with the results of its stages.
type caller struct {
	warmupCalls, counted int
	isSteady             bool
	times                []int64
}

// run connects, warms up, and after a common beginning each, times calls and counts them. finish awaits the common beginning of a stage.
func (c *caller) run(m *Measuring, connect func() (Connection, error), finish func(stage int)) error {
	connection, err := connect()
	if err != nil {
		return err
	}
	defer connection.Close()
	operation, argument, expected := service.Ping, any(nil), any(nil)
	if m.Payload > 0 {
		text := []byte(strings.Repeat("abcdefghijklmnopqrstuvwxyz", m.Payload/26+1)[:m.Payload])
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
	call := func() error {
		_, err := connection.Call(operation, argument)
		return err
	}
	if err := c.warmUp(call, time.Duration(m.warmupMs)*time.Millisecond); err != nil {
		return err
	}
	c.times = make([]int64, m.calls)
	finish(0)
	for i := range c.times {
		start := time.Now()
		if err := call(); err != nil {
			return err
		}
		c.times[i] = time.Since(start).Nanoseconds()
	}
	finish(1)
	for start := time.Now(); time.Since(start) < time.Duration(m.countedMs)*time.Millisecond; c.counted++ {
		if err := call(); err != nil {
			return err
		}
	}
	// Closing does not count.
	finish(2)
	return nil
}

// warmUp calls in blocks, each twice as long as the block before, until some in a row are no faster than the fastest.
func (c *caller) warmUp(call func() error, longest time.Duration) error {
	begin := time.Now()
	deadline := begin.Add(longest)
	fastest := math.Inf(1)
	for block, steady := firstBlock, 0; steady < steadyBlocks || time.Since(begin) < leastWarmup; block *= 2 {
		start := time.Now()
		for i := 0; i < block; i++ {
			if !time.Now().Before(deadline) {
				return nil
			}
			if err := call(); err != nil {
				return err
			}
			c.warmupCalls++
		}
		duration := float64(time.Since(start)) / float64(block)
		if duration < faster*fastest {
			steady = 0
		} else {
			steady++
		}
		fastest = min(fastest, duration)
	}
	c.isSteady = true
	return nil
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
	fmt.Printf(`{"elapsed_ns":%d,"calls":%d}`+"\n",
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

package service

/*
#include <stdlib.h>
#include <time.h>
#include "../../c/session.h"

static int64_t now_ns(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// A Reason says why a call has no result, other than the server's answer.
type Reason int

// The reasons, in the order of session.h.
const (
	_ Reason = iota
	NotConnected
	BackPressured
	TimedOut
	Closed
	InvalidRequest
	MalformedResponse
	aeronFailure
)

var reasonNames = [...]string{
	"", "NOT_CONNECTED", "BACK_PRESSURED", "TIMED_OUT", "CLOSED", "INVALID_REQUEST", "MALFORMED_RESPONSE", "AERON",
}

// A CallError is the error of a call without an answer of the server.
type CallError struct {
	Reason Reason
	Text   string
}

func (e *CallError) Error() string {
	return reasonNames[e.Reason] + ": " + e.Text
}

// session is the session in C, for one goroutine.
type session struct {
	raw *C.session_t
}

// now is the clock of deadlines.
func now() int64 {
	return int64(C.now_ns())
}

func connect(options *Options) (*session, error) {
	// Aeron's errors are texts of the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	texts := make([]*C.char, 0, 4)
	text := func(value string) *C.char {
		texts = append(texts, C.CString(value))
		return texts[len(texts)-1]
	}
	defer func() {
		for _, text := range texts {
			C.free(unsafe.Pointer(text))
		}
	}()
	raw := C.session_options_t{
		request_channel:  text(options.RequestChannel),
		response_channel: text(options.ResponseChannel),
		idle:             text(options.Idle),
		timeout_ns:       C.int64_t(options.Timeout.Nanoseconds()),
	}
	if options.AeronDir != "" {
		raw.aeron_dir = text(options.AeronDir)
	}
	var s session
	if err := callError(C.session_connect(&s.raw, &raw)); err != nil {
		return nil, err
	}
	return &s, nil
}

func (s *session) send(message []byte, deadline int64) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	data := (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(message)))
	return callError(C.session_send(s.raw, data, C.size_t(len(message)), C.int64_t(deadline)))
}

// receive returns a message that lasts until the next call.
func (s *session) receive(deadline int64) ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var data *C.uint8_t
	var length C.size_t
	if err := callError(C.session_receive(s.raw, &data, &length, C.int64_t(deadline))); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(data)), int(length)), nil
}

func (s *session) close() {
	C.session_close(s.raw)
}

func callError(result C.session_result_t) error {
	switch reason := Reason(result); reason {
	case 0:
		return nil
	case aeronFailure:
		return &CallError{reason, C.GoString(C.session_error())}
	default:
		return &CallError{reason, "no result of the server"}
	}
}

// Package service calls the cross-language service over Aeron's C client. CONTRACT.md defines
// messages, operations, errors and deadlines.
package service

import (
	"time"

	"crosslanguage/target/protocol"

	"google.golang.org/protobuf/proto"
)

// The channels, unless an option names others.
const (
	RequestChannel  = "aeron:ipc?term-length=4m|mtu=8k"
	ResponseChannel = "aeron:ipc?control-mode=response|term-length=4m|mtu=8k"
)

// Options of a Caller.
type Options struct {
	// The media driver's directory. Empty for Aeron's default.
	AeronDir        string
	RequestChannel  string
	ResponseChannel string
	// spin, yield or backoff
	Idle string
	// The longest time that connecting, or a call with all its callbacks, takes.
	Timeout time.Duration
}

// A Caller has a session with a server. One goroutine uses it. After a CallError, close it and connect anew.
type Caller struct {
	session           *session
	timeout           time.Duration
	onCallback        func(argument int64) (int64, error)
	nextCorrelationID int64
	buffer            []byte
}

// Connect connects to a server. onCallback answers its callbacks.
func Connect(options Options, onCallback func(argument int64) (int64, error)) (*Caller, error) {
	session, err := connect(&options)
	if err != nil {
		return nil, err
	}
	return &Caller{session: session, timeout: options.Timeout, onCallback: onCallback, nextCorrelationID: 1}, nil
}

// Close ends the session.
func (c *Caller) Close() {
	c.session.close()
}

// Call gives a request a correlation id, and waits for its result or failure. The error is a
// *CallError.
func (c *Caller) Call(request *protocol.Request) (*protocol.Response, error) {
	deadline := now() + c.timeout.Nanoseconds()
	request.CorrelationId = c.nextCorrelationID
	c.nextCorrelationID++
	if err := c.send(request, deadline); err != nil {
		return nil, err
	}
	for {
		message, err := c.session.receive(deadline)
		if err != nil {
			return nil, err
		}
		response := &protocol.Response{}
		if err := proto.Unmarshal(message, response); err != nil {
			return nil, &CallError{MalformedResponse, err.Error()}
		}
		// Id 0 says that the server could not read the request. Any other id is that of an earlier
		// call, which has timed out.
		if response.CorrelationId != request.CorrelationId && response.CorrelationId != 0 {
			continue
		}
		if response.Outcome == nil {
			return nil, &CallError{MalformedResponse, "no known outcome"}
		}
		callback, isCallback := response.Outcome.(*protocol.Response_CallbackArgument)
		if !isCallback {
			return response, nil
		}
		answer := &protocol.Request{CorrelationId: request.CorrelationId}
		if result, err := c.onCallback(callback.CallbackArgument); err != nil {
			answer.Operation = &protocol.Request_CallbackError{CallbackError: err.Error()}
		} else {
			answer.Operation = &protocol.Request_CallbackResult{CallbackResult: result}
		}
		if err := c.send(answer, deadline); err != nil {
			return nil, err
		}
	}
}

func (c *Caller) send(request *protocol.Request, deadline int64) error {
	message, err := proto.MarshalOptions{}.MarshalAppend(c.buffer[:0], request)
	if err != nil {
		return &CallError{InvalidRequest, err.Error()}
	}
	c.buffer = message
	return c.session.send(message, deadline)
}

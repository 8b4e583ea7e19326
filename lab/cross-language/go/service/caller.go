//go:build cgo

package service

import (
	"fmt"
	"time"
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

// Call calls an operation and waits for its result. The error is a *Failure or a *CallError.
func (c *Caller) Call(operation Operation, argument any) (any, error) {
	deadline := now() + c.timeout.Nanoseconds()
	id := c.nextCorrelationID
	c.nextCorrelationID++
	request := envelope{requestTemplate, id, uint8(operation)}
	if err := c.send(request, operation.Argument(), argument, deadline); err != nil {
		return nil, err
	}
	for {
		message, err := c.session.receive(deadline)
		if err != nil {
			return nil, err
		}
		response, body, err := readEnvelope(message)
		if err != nil {
			return nil, &CallError{MalformedResponse, err.Error()}
		}
		switch {
		case response.correlationID != id:
			// Responds to an earlier call, which has timed out.
		case response.template == callbackRequestTemplate:
			if err := c.answerCallback(response, body, deadline); err != nil {
				return nil, err
			}
		case response.template == responseTemplate:
			return result(response, body, operation.Result())
		default:
			return nil, &CallError{MalformedResponse, fmt.Sprintf("template %d", response.template)}
		}
	}
}

func (c *Caller) send(head envelope, kind Kind, body any, deadline int64) error {
	message, err := WriteBody(head.write(c.buffer[:0]), kind, body)
	if err != nil {
		return &CallError{InvalidRequest, err.Error()}
	}
	c.buffer = message
	return c.session.send(message, deadline)
}

func (c *Caller) answerCallback(request envelope, body []byte, deadline int64) error {
	answer := envelope{callbackResponseTemplate, request.correlationID, uint8(OK)}
	argument, err := ReadBody(body, Integer)
	if err != nil {
		return &CallError{MalformedResponse, err.Error()}
	}
	value, err := c.onCallback(argument.(int64))
	if err != nil {
		answer.code = uint8(CallbackFailed)
		return c.send(answer, Text, err.Error(), deadline)
	}
	return c.send(answer, Integer, value, deadline)
}

func result(response envelope, body []byte, kind Kind) (any, error) {
	if status := Status(response.code); status != OK {
		text, err := ReadBody(body, Text)
		if err != nil {
			return nil, &CallError{MalformedResponse, err.Error()}
		}
		return nil, &Failure{status, text.(string)}
	}
	value, err := ReadBody(body, kind)
	if err != nil {
		return nil, &CallError{MalformedResponse, err.Error()}
	}
	return value, nil
}

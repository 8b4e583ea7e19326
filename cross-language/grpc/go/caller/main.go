// The caller's program over gRPC.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"crosslanguage/modes"
	"crosslanguage/service"
	"crosslanguagegrpc/messages"
	"crosslanguagegrpc/target/protocol"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func main() {
	var measuring modes.Measuring
	server := flag.String("server", "127.0.0.1:7300", "the server: HOST:PORT or unix:PATH")
	timeout := flag.Int64("timeout-ms", 5000, "longest time of a call, in milliseconds")
	cases := flag.String("check", "", "call what each line of a file says, and print the results")
	measuring.Flags()
	flag.Parse()
	isMeasuring := measuring.Payload >= 0 || measuring.ConnectCycles > 0
	if *cases == "" && !isMeasuring {
		fmt.Fprintln(os.Stderr, "one of --check, --measure and --connect-cycles is required")
		os.Exit(2)
	}
	connect := func() (modes.Connection, error) {
		return connect(*server, time.Duration(*timeout)*time.Millisecond)
	}
	if err := run(connect, *cases, &measuring); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(connect func() (modes.Connection, error), cases string, measuring *modes.Measuring) error {
	if cases == "" {
		return measuring.Run(connect)
	}
	connection, err := connect()
	if err != nil {
		return err
	}
	defer connection.Close()
	return modes.Check(connection, cases)
}

// A connection has a channel of its own.
type connection struct {
	channel *grpc.ClientConn
	client  protocol.ServiceClient
	timeout time.Duration
}

func connect(server string, timeout time.Duration) (modes.Connection, error) {
	channel, err := grpc.NewClient(server,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(messages.WindowLength),
		grpc.WithInitialConnWindowSize(messages.WindowLength))
	if err != nil {
		return nil, err
	}
	return &connection{channel, protocol.NewServiceClient(channel), timeout}, nil
}

func (c *connection) Close() {
	c.channel.Close()
}

func (c *connection) Call(operation service.Operation, argument any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	result, err := c.call(ctx, operation, argument)
	if err == nil {
		return result, nil
	}
	answer := status.Convert(err)
	switch answer.Code() {
	case codes.InvalidArgument:
		return nil, &service.Failure{Status: service.InvalidArgument, Text: answer.Message()}
	case codes.NotFound:
		return nil, &service.Failure{Status: service.UnknownObject, Text: answer.Message()}
	case codes.ResourceExhausted:
		return nil, &service.Failure{Status: service.LimitReached, Text: answer.Message()}
	case codes.Aborted:
		return nil, &service.Failure{Status: service.CallbackFailed, Text: answer.Message()}
	default:
		return nil, err
	}
}

func (c *connection) call(ctx context.Context, operation service.Operation, argument any) (any, error) {
	if operation == service.Callback {
		return c.callback(ctx, argument.(int64))
	}
	message, err := messages.Message(operation.Argument(), argument)
	if err != nil {
		return nil, err
	}
	var result proto.Message
	switch operation {
	case service.Ping:
		result, err = c.client.Ping(ctx, message.(*protocol.Void))
	case service.Successor:
		result, err = c.client.Successor(ctx, message.(*protocol.Integer))
	case service.Reverse:
		result, err = c.client.Reverse(ctx, message.(*protocol.Text))
	case service.RunningSums:
		result, err = c.client.RunningSums(ctx, message.(*protocol.Integers))
	case service.Create:
		result, err = c.client.Create(ctx, message.(*protocol.CreateObject))
	case service.Call:
		result, err = c.client.Call(ctx, message.(*protocol.CallObject))
	case service.Transform:
		result, err = c.client.Transform(ctx, message.(*protocol.Value))
	case service.Total:
		result, err = c.client.Total(ctx, message.(*protocol.Integers))
	case service.Squares:
		result, err = c.client.Squares(ctx, message.(*protocol.Integer))
	case service.TransformAll:
		result, err = c.client.TransformAll(ctx, message.(*protocol.Value))
	}
	if err != nil {
		return nil, err
	}
	return messages.Body(result)
}

func (c *connection) callback(ctx context.Context, count int64) (any, error) {
	stream, err := c.client.Callback(ctx)
	if err != nil {
		return nil, err
	}
	// An error of Send is also that of Recv, which knows the reason.
	_ = stream.Send(&protocol.CallerMessage{Message: &protocol.CallerMessage_Count{Count: count}})
	for {
		message, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		switch message := message.Message.(type) {
		case *protocol.ServerMessage_Callback:
			answer := &protocol.CallerMessage{}
			if value, err := modes.Square(message.Callback); err == nil {
				answer.Message = &protocol.CallerMessage_Answer{Answer: value}
			} else {
				answer.Message = &protocol.CallerMessage_Failure{Failure: err.Error()}
			}
			_ = stream.Send(answer)
		case *protocol.ServerMessage_Result:
			return message.Result, nil
		default:
			return nil, fmt.Errorf("an empty message")
		}
	}
}

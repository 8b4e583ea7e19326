// The caller's program over gRPC.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"crosslanguage/modes"
	"crosslanguage/service"
	"crosslanguagegrpc/target/protocol"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Of the flow control of HTTP/2, in bytes: equal in all languages.
const windowLength = 1 << 20

func main() {
	server := flag.String("server", "127.0.0.1:7300", "the server: HOST:PORT or unix:PATH")
	mode := modes.Parse()
	mode.Run(func() (modes.Connection, error) {
		channel, err := grpc.NewClient(*server,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithInitialWindowSize(windowLength),
			grpc.WithInitialConnWindowSize(windowLength))
		if err != nil {
			return nil, err
		}
		return &connection{channel, protocol.NewServiceClient(channel), mode.Timeout}, nil
	})
}

// A connection has a channel of its own.
type connection struct {
	channel *grpc.ClientConn
	client  protocol.ServiceClient
	timeout time.Duration
}

func (c *connection) Close() {
	c.channel.Close()
}

func (c *connection) Call(operation service.Operation, argument any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	switch operation {
	case service.Ping:
		_, err := c.client.Ping(ctx, &protocol.Void{})
		return nil, err
	case service.Reverse:
		result, err := c.client.Reverse(ctx, &protocol.Text{Value: argument.(string)})
		return result.GetValue(), err
	default:
		return nil, fmt.Errorf("no operation of gRPC here: %v", operation)
	}
}

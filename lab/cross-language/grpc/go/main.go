// The caller's program over gRPC.
package main

import (
	"context"
	"flag"
	"time"

	"crosslanguage/modes"
	"crosslanguage/target/protocol"

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
		return &connection{channel, mode.Timeout}, nil
	})
}

// A connection has a channel of its own.
type connection struct {
	channel *grpc.ClientConn
	timeout time.Duration
}

func (c *connection) Close() {
	c.channel.Close()
}

func (c *connection) Call(request *protocol.Request) (*protocol.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	response := &protocol.Response{}
	// A generated client does the same, but would be in the package of the messages, whose module has
	// no gRPC.
	err := c.channel.Invoke(ctx, "/crosslanguage.Service/Call", request, response)
	return response, err
}

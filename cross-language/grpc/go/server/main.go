// The server over gRPC. Objects belong to all callers.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"crosslanguage/service"
	"crosslanguagegrpc/messages"
	"crosslanguagegrpc/target/protocol"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

type server struct {
	protocol.UnimplementedServiceServer
	mutex   sync.Mutex
	objects objects
}

func main() {
	address := flag.String("listen", "127.0.0.1:7300", "where to listen: HOST:PORT or unix:PATH")
	flag.Parse()
	if err := run(*address); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(address string) error {
	network := "tcp"
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		network, address = "unix", path
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	grpcServer := grpc.NewServer(
		grpc.InitialWindowSize(messages.WindowLength), grpc.InitialConnWindowSize(messages.WindowLength))
	protocol.RegisterServiceServer(grpcServer, &server{})
	fmt.Println("serving")
	return grpcServer.Serve(listener)
}

// execute executes an operation, whose result has the message R.
func execute[R proto.Message](s *server, operation service.Operation, argument proto.Message) (R, error) {
	var none R
	body, err := messages.Body(argument)
	if err != nil {
		return none, status.Error(codes.InvalidArgument, err.Error())
	}
	var result any
	if operation == service.Create || operation == service.Call {
		s.mutex.Lock()
		result, err = s.objects.execute(operation, body)
		s.mutex.Unlock()
	} else {
		// Without objects, calls need not wait for each other.
		result, err = (&objects{}).execute(operation, body)
	}
	if err != nil {
		return none, err
	}
	message, err := messages.Message(operation.Result(), result)
	if err != nil {
		return none, err
	}
	return message.(R), nil
}

func (s *server) Ping(_ context.Context, argument *protocol.Void) (*protocol.Void, error) {
	return execute[*protocol.Void](s, service.Ping, argument)
}

func (s *server) Successor(_ context.Context, argument *protocol.Integer) (*protocol.Integer, error) {
	return execute[*protocol.Integer](s, service.Successor, argument)
}

func (s *server) Reverse(_ context.Context, argument *protocol.Text) (*protocol.Text, error) {
	return execute[*protocol.Text](s, service.Reverse, argument)
}

func (s *server) RunningSums(_ context.Context, argument *protocol.Integers) (*protocol.Integers, error) {
	return execute[*protocol.Integers](s, service.RunningSums, argument)
}

func (s *server) Create(_ context.Context, argument *protocol.CreateObject) (*protocol.ObjectValue, error) {
	return execute[*protocol.ObjectValue](s, service.Create, argument)
}

func (s *server) Call(_ context.Context, argument *protocol.CallObject) (*protocol.ObjectValue, error) {
	return execute[*protocol.ObjectValue](s, service.Call, argument)
}

func (s *server) Transform(_ context.Context, argument *protocol.Value) (*protocol.Value, error) {
	return execute[*protocol.Value](s, service.Transform, argument)
}

func (s *server) Total(_ context.Context, argument *protocol.Integers) (*protocol.Integer, error) {
	return execute[*protocol.Integer](s, service.Total, argument)
}

func (s *server) Squares(_ context.Context, argument *protocol.Integer) (*protocol.Integers, error) {
	return execute[*protocol.Integers](s, service.Squares, argument)
}

func (s *server) TransformAll(_ context.Context, argument *protocol.Value) (*protocol.Value, error) {
	return execute[*protocol.Value](s, service.TransformAll, argument)
}

// Callback calls the caller back, and adds the answers.
func (s *server) Callback(stream grpc.BidiStreamingServer[protocol.CallerMessage, protocol.ServerMessage]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	count, isCount := first.Message.(*protocol.CallerMessage_Count)
	if !isCount || count.Count < 0 || count.Count > smallArrayLimit {
		return invalid("callbacks: 0 to %d", smallArrayLimit)
	}
	var sum int64
	for argument := int64(1); argument <= count.Count; argument++ {
		callback := &protocol.ServerMessage_Callback{Callback: argument}
		if err := stream.Send(&protocol.ServerMessage{Message: callback}); err != nil {
			return err
		}
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		switch answer := message.Message.(type) {
		case *protocol.CallerMessage_Answer:
			if sum, err = add(sum, answer.Answer); err != nil {
				return err
			}
		case *protocol.CallerMessage_Failure:
			return status.Error(codes.Aborted, answer.Failure)
		default:
			return invalid("the message is no answer")
		}
	}
	return stream.Send(&protocol.ServerMessage{Message: &protocol.ServerMessage_Result{Result: sum}})
}

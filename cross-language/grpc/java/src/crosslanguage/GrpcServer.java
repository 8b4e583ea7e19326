package crosslanguage;

import com.google.protobuf.Message;
import crosslanguage.codecs.Operation;
import crosslanguage.protocol.CallObject;
import crosslanguage.protocol.CallerMessage;
import crosslanguage.protocol.CreateObject;
import crosslanguage.protocol.Integer;
import crosslanguage.protocol.Integers;
import crosslanguage.protocol.ObjectValue;
import crosslanguage.protocol.ServerMessage;
import crosslanguage.protocol.ServiceGrpc;
import crosslanguage.protocol.Text;
import crosslanguage.protocol.Value;
import crosslanguage.protocol.Void;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.netty.channel.unix.DomainSocketAddress;

import java.net.InetSocketAddress;
import java.util.Set;

/** The server over gRPC. Objects belong to all callers. */
public final class GrpcServer extends ServiceGrpc.ServiceImplBase
{
    private final Objects objects = new Objects();

    private GrpcServer()
    {
    }

    /**
     * Serves until the process is asked to end.
     *
     * @param args {@code --listen HOST:PORT} or {@code --listen unix:PATH}.
     * @throws Exception if the address cannot be listened to.
     */
    public static void main(final String[] args) throws Exception
    {
        final String address = new Options(args, Set.of("--listen"), Set.of()).get("--listen", "127.0.0.1:7300");
        final NettyServerBuilder builder;
        if (address.startsWith("unix:"))
        {
            builder = NettyServerBuilder.forAddress(new DomainSocketAddress(address.substring(5)))
                .channelType(EpollServerDomainSocketChannel.class)
                .bossEventLoopGroup(new EpollEventLoopGroup(1))
                .workerEventLoopGroup(new EpollEventLoopGroup());
        }
        else
        {
            final int colon = address.lastIndexOf(':');
            final int port = java.lang.Integer.parseInt(address.substring(colon + 1));
            builder = NettyServerBuilder.forAddress(new InetSocketAddress(address.substring(0, colon), port));
        }
        // No operation blocks, so none needs a thread of its own.
        final io.grpc.Server server = builder.directExecutor()
            .flowControlWindow(GrpcMessages.WINDOW_LENGTH).addService(new GrpcServer()).build().start();
        System.out.println("serving");
        server.awaitTermination();
    }

    private <R extends Message> void execute(
        final Operation operation, final Message argument, final StreamObserver<R> observer)
    {
        try
        {
            final Object body = GrpcMessages.body(argument);
            final Object result;
            if (operation == Operation.CREATE || operation == Operation.CALL)
            {
                synchronized (objects)
                {
                    result = objects.execute(operation, body);
                }
            }
            else
            {
                // Without objects, calls need not wait for each other.
                result = new Objects().execute(operation, body);
            }
            @SuppressWarnings("unchecked")
            final R message = (R)GrpcMessages.message(Contract.result(operation), result);
            observer.onNext(message);
            observer.onCompleted();
        }
        catch (final MalformedException ex)
        {
            observer.onError(invalid(ex.getMessage()));
        }
        catch (final FailureException ex)
        {
            observer.onError(status(ex));
        }
    }

    private static StatusRuntimeException invalid(final String text)
    {
        return Status.INVALID_ARGUMENT.withDescription(text).asRuntimeException();
    }

    private static StatusRuntimeException status(final FailureException failure)
    {
        final Status status;
        switch (failure.status)
        {
            case UNKNOWN_OBJECT:
                status = Status.NOT_FOUND;
                break;

            case LIMIT_REACHED:
                status = Status.RESOURCE_EXHAUSTED;
                break;

            case CALLBACK_FAILED:
                status = Status.ABORTED;
                break;

            default:
                status = Status.INVALID_ARGUMENT;
                break;
        }
        return status.withDescription(failure.getMessage()).asRuntimeException();
    }

    @Override
    public void ping(final Void argument, final StreamObserver<Void> observer)
    {
        execute(Operation.PING, argument, observer);
    }

    @Override
    public void successor(final Integer argument, final StreamObserver<Integer> observer)
    {
        execute(Operation.SUCCESSOR, argument, observer);
    }

    @Override
    public void reverse(final Text argument, final StreamObserver<Text> observer)
    {
        execute(Operation.REVERSE, argument, observer);
    }

    @Override
    public void runningSums(final Integers argument, final StreamObserver<Integers> observer)
    {
        execute(Operation.RUNNING_SUMS, argument, observer);
    }

    @Override
    public void create(final CreateObject argument, final StreamObserver<ObjectValue> observer)
    {
        execute(Operation.CREATE, argument, observer);
    }

    @Override
    public void call(final CallObject argument, final StreamObserver<ObjectValue> observer)
    {
        execute(Operation.CALL, argument, observer);
    }

    @Override
    public StreamObserver<CallerMessage> callback(final StreamObserver<ServerMessage> observer)
    {
        return new OpenCall(observer);
    }

    @Override
    public void transform(final Value argument, final StreamObserver<Value> observer)
    {
        execute(Operation.TRANSFORM, argument, observer);
    }

    @Override
    public void total(final Integers argument, final StreamObserver<Integer> observer)
    {
        execute(Operation.TOTAL, argument, observer);
    }

    @Override
    public void squares(final Integer argument, final StreamObserver<Integers> observer)
    {
        execute(Operation.SQUARES, argument, observer);
    }

    @Override
    public void transformAll(final Value argument, final StreamObserver<Value> observer)
    {
        execute(Operation.TRANSFORM_ALL, argument, observer);
    }

    /** A call of {@link Operation#CALLBACK}. */
    private static final class OpenCall implements StreamObserver<CallerMessage>
    {
        private final StreamObserver<ServerMessage> observer;
        private boolean isOver;
        /** Negative before the first message. */
        private long count = -1;
        private long current;
        private long sum;

        OpenCall(final StreamObserver<ServerMessage> observer)
        {
            this.observer = observer;
        }

        @Override
        public void onNext(final CallerMessage message)
        {
            if (isOver)
            {
                return;
            }
            try
            {
                receive(message);
            }
            catch (final FailureException ex)
            {
                isOver = true;
                observer.onError(status(ex));
            }
        }

        private void receive(final CallerMessage message) throws FailureException
        {
            switch (message.getMessageCase())
            {
                case COUNT:
                    if (count >= 0 || message.getCount() < 0 || message.getCount() > Contract.SMALL_ARRAY_LIMIT)
                    {
                        throw Objects.invalid("callbacks: 0 to " + Contract.SMALL_ARRAY_LIMIT + ", once");
                    }
                    count = message.getCount();
                    break;

                case ANSWER:
                    if (count < 0)
                    {
                        throw Objects.invalid("the first message is no count");
                    }
                    sum = Objects.add(sum, message.getAnswer());
                    break;

                case FAILURE:
                    throw new FailureException(
                        crosslanguage.codecs.Status.CALLBACK_FAILED, message.getFailure());

                default:
                    throw Objects.invalid("an empty message");
            }
            if (current < count)
            {
                current++;
                observer.onNext(ServerMessage.newBuilder().setCallback(current).build());
            }
            else
            {
                isOver = true;
                observer.onNext(ServerMessage.newBuilder().setResult(sum).build());
                observer.onCompleted();
            }
        }

        @Override
        public void onError(final Throwable error)
        {
            isOver = true;
        }

        @Override
        public void onCompleted()
        {
            if (!isOver)
            {
                isOver = true;
                observer.onError(status(Objects.invalid("the caller sends no more messages")));
            }
        }
    }
}

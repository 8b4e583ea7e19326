package crosslanguage;

import com.google.protobuf.Message;
import crosslanguage.codecs.Operation;
import crosslanguage.codecs.Status;
import crosslanguage.protocol.CallObject;
import crosslanguage.protocol.CallerMessage;
import crosslanguage.protocol.CreateObject;
import crosslanguage.protocol.Integer;
import crosslanguage.protocol.Integers;
import crosslanguage.protocol.ServerMessage;
import crosslanguage.protocol.ServiceGrpc;
import crosslanguage.protocol.Text;
import crosslanguage.protocol.Value;
import crosslanguage.protocol.Void;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.StreamObserver;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.epoll.EpollDomainSocketChannel;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.channel.unix.DomainSocketAddress;

import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** The caller's program over gRPC. */
public final class GrpcCaller
{
    private GrpcCaller()
    {
    }

    /**
     * Calls the service.
     *
     * @param args {@code --server HOST:PORT} or {@code --server unix:PATH}, {@code --timeout-ms}, and a mode: see the
     *             README.
     */
    public static void main(final String[] args)
    {
        final Options options = new Options(args, Modes.options("--server", "--timeout-ms"), Set.of());
        final EventLoopGroup eventLoops = new EpollEventLoopGroup();
        int status = 0;
        try
        {
            if (!Modes.run(options, () -> new GrpcConnection(options, eventLoops)))
            {
                throw new IllegalArgumentException("one of --check, --measure and --connect-cycles is required");
            }
        }
        catch (final Exception ex)
        {
            System.err.println("error: " + ex);
            status = 1;
        }
        Modes.OUT.flush();
        System.exit(status);
    }

    /** A channel of its own. */
    private static final class GrpcConnection implements Connection
    {
        private final ManagedChannel channel;
        private final ServiceGrpc.ServiceBlockingStub stub;
        private final long timeoutNs;

        GrpcConnection(final Options options, final EventLoopGroup eventLoops)
        {
            final String server = options.get("--server", "127.0.0.1:7300");
            final NettyChannelBuilder builder;
            if (server.startsWith("unix:"))
            {
                builder = NettyChannelBuilder.forAddress(new DomainSocketAddress(server.substring(5)))
                    .channelType(EpollDomainSocketChannel.class)
                    .eventLoopGroup(eventLoops)
                    // Unix sockets have no such option.
                    .withOption(ChannelOption.SO_KEEPALIVE, null)
                    // A path is no authority of HTTP/2.
                    .overrideAuthority("localhost");
            }
            else
            {
                builder = NettyChannelBuilder.forTarget(server);
            }
            channel = builder.usePlaintext().directExecutor()
                .flowControlWindow(GrpcMessages.WINDOW_LENGTH).build();
            stub = ServiceGrpc.newBlockingStub(channel);
            timeoutNs = options.nanos("--timeout-ms");
        }

        @Override
        public Object call(final Operation operation, final Object argument) throws CallException, FailureException
        {
            try
            {
                if (operation == Operation.CALLBACK)
                {
                    return callback((Long)argument);
                }
                return GrpcMessages.body(
                    call(operation, GrpcMessages.message(Contract.argument(operation), argument)));
            }
            catch (final StatusRuntimeException ex)
            {
                throw failure(ex);
            }
            catch (final MalformedException ex)
            {
                throw new CallException(CallException.Reason.MALFORMED_RESPONSE, ex.getMessage());
            }
        }

        private Message call(final Operation operation, final Message argument)
        {
            final ServiceGrpc.ServiceBlockingStub stub =
                this.stub.withDeadlineAfter(timeoutNs, TimeUnit.NANOSECONDS);
            switch (operation)
            {
                case PING:
                    return stub.ping((Void)argument);
                case SUCCESSOR:
                    return stub.successor((Integer)argument);
                case REVERSE:
                    return stub.reverse((Text)argument);
                case RUNNING_SUMS:
                    return stub.runningSums((Integers)argument);
                case CREATE:
                    return stub.create((CreateObject)argument);
                case CALL:
                    return stub.call((CallObject)argument);
                case TRANSFORM:
                    return stub.transform((Value)argument);
                case TOTAL:
                    return stub.total((Integers)argument);
                case SQUARES:
                    return stub.squares((Integer)argument);
                case TRANSFORM_ALL:
                    return stub.transformAll((Value)argument);
                default:
                    throw new IllegalArgumentException("no such operation: " + operation);
            }
        }

        private long callback(final long count)
        {
            final Answers answers = new Answers();
            answers.server = ServiceGrpc.newStub(channel).withDeadlineAfter(timeoutNs, TimeUnit.NANOSECONDS)
                .callback(answers);
            answers.server.onNext(CallerMessage.newBuilder().setCount(count).build());
            try
            {
                return answers.result.get();
            }
            catch (final ExecutionException ex)
            {
                throw (StatusRuntimeException)ex.getCause();
            }
            catch (final InterruptedException ex)
            {
                throw new IllegalStateException(ex);
            }
        }

        private FailureException failure(final StatusRuntimeException ex) throws CallException
        {
            final String text = String.valueOf(ex.getStatus().getDescription());
            switch (ex.getStatus().getCode())
            {
                case INVALID_ARGUMENT:
                    return new FailureException(Status.INVALID_ARGUMENT, text);
                case NOT_FOUND:
                    return new FailureException(Status.UNKNOWN_OBJECT, text);
                case RESOURCE_EXHAUSTED:
                    return new FailureException(Status.LIMIT_REACHED, text);
                case ABORTED:
                    return new FailureException(Status.CALLBACK_FAILED, text);
                case UNAVAILABLE:
                    throw new CallException(CallException.Reason.NOT_CONNECTED, text);
                case DEADLINE_EXCEEDED:
                    throw new CallException(CallException.Reason.TIMED_OUT, text);
                default:
                    throw new CallException(CallException.Reason.MALFORMED_RESPONSE, ex.getMessage());
            }
        }

        @Override
        public void close()
        {
            channel.shutdownNow();
            try
            {
                channel.awaitTermination(5, TimeUnit.SECONDS);
            }
            catch (final InterruptedException ex)
            {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Answers the callbacks of a call. */
    private static final class Answers implements StreamObserver<ServerMessage>
    {
        final CompletableFuture<Long> result = new CompletableFuture<>();
        /** Set before the first message is sent, and so before one is received. */
        volatile StreamObserver<CallerMessage> server;

        @Override
        public void onNext(final ServerMessage message)
        {
            if (message.hasResult())
            {
                result.complete(message.getResult());
                server.onCompleted();
                return;
            }
            final CallerMessage.Builder answer = CallerMessage.newBuilder();
            try
            {
                answer.setAnswer(Modes.square(message.getCallback()));
            }
            catch (final FailureException ex)
            {
                answer.setFailure(ex.getMessage());
            }
            server.onNext(answer.build());
        }

        @Override
        public void onError(final Throwable error)
        {
            result.completeExceptionally(io.grpc.Status.fromThrowable(error).asRuntimeException());
        }

        @Override
        public void onCompleted()
        {
            // A call that ends without a result is an error of the server.
            result.completeExceptionally(io.grpc.Status.INTERNAL.asRuntimeException());
        }
    }
}

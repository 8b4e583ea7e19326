package crosslanguage;

import crosslanguage.protocol.Request;
import crosslanguage.protocol.Response;
import crosslanguage.protocol.ServiceGrpc;
import io.grpc.ManagedChannel;
import io.grpc.netty.NettyChannelBuilder;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.epoll.EpollDomainSocketChannel;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.channel.unix.DomainSocketAddress;

import java.util.concurrent.TimeUnit;

/** The caller's program over gRPC. */
public final class GrpcCaller
{
    /** Of the flow control of HTTP/2, in bytes: equal in all languages. */
    static final int WINDOW_LENGTH = 1 << 20;

    private GrpcCaller()
    {
    }

    /**
     * Calls the service.
     *
     * @param args {@code --server HOST:PORT} or {@code --server unix:PATH}, and those of the modes: see the README.
     */
    public static void main(final String[] args)
    {
        final Options options = new Options(args);
        final String server = options.get("--server", "127.0.0.1:7300");
        final EventLoopGroup eventLoops = new EpollEventLoopGroup();
        Modes.run(options, timeoutNs -> new GrpcConnection(server, eventLoops, timeoutNs));
    }

    /** A channel of its own. */
    private static final class GrpcConnection implements Modes.Connection
    {
        private final ManagedChannel channel;
        private final ServiceGrpc.ServiceBlockingStub stub;
        private final long timeoutNs;

        GrpcConnection(final String server, final EventLoopGroup eventLoops, final long timeoutNs)
        {
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
                .flowControlWindow(WINDOW_LENGTH).build();
            stub = ServiceGrpc.newBlockingStub(channel);
            this.timeoutNs = timeoutNs;
        }

        @Override
        public Response call(final Request request)
        {
            return stub.withDeadlineAfter(timeoutNs, TimeUnit.NANOSECONDS).call(request);
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
}

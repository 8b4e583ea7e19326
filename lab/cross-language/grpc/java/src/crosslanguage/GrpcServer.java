package crosslanguage;

import crosslanguage.protocol.Request;
import crosslanguage.protocol.Response;
import crosslanguage.protocol.ServiceGrpc;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.netty.channel.unix.DomainSocketAddress;

import java.net.InetSocketAddress;

/** The server over gRPC. */
public final class GrpcServer extends ServiceGrpc.ServiceImplBase
{
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
        final String address = new Options(args).get("--listen", "127.0.0.1:7300");
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
            final int port = Integer.parseInt(address.substring(colon + 1));
            builder = NettyServerBuilder.forAddress(new InetSocketAddress(address.substring(0, colon), port));
        }
        // No operation blocks, so none needs a thread of its own.
        final io.grpc.Server server = builder.directExecutor()
            .flowControlWindow(GrpcCaller.WINDOW_LENGTH).addService(new GrpcServer()).build().start();
        System.out.println("serving");
        server.awaitTermination();
    }

    /** Executes a call, which is a session of its own. */
    @Override
    public void call(final Request request, final StreamObserver<Response> observer)
    {
        observer.onNext(new Service(0).respond(request));
        observer.onCompleted();
    }
}

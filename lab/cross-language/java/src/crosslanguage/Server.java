package crosslanguage;

import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.Subscription;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.IdleStrategy;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

/** The server: one thread, which polls requests and answers each session on its own response channel. */
public final class Server
{
    /** Time between two looks for callers that have gone. */
    private static final long HOUSEKEEPING_NS = 100_000_000;
    private static final int FRAGMENT_LIMIT = 10;

    private final Aeron aeron;
    private final Subscription requests;
    private final String responseChannel;
    private final long clientTimeoutNs;
    private final long callbackTimeoutNs;
    /** By the correlation id of the image of their requests. */
    private final Map<Long, Session> sessions = new HashMap<>();
    private final FragmentAssembler assembler = new FragmentAssembler(this::onMessage);
    private long nextHousekeeping = System.nanoTime();

    private Server(final Aeron aeron, final Options options)
    {
        this.aeron = aeron;
        requests = aeron.addSubscription(options.requestChannel, Contract.REQUEST_STREAM);
        responseChannel = options.responseChannel;
        clientTimeoutNs = options.milliseconds("--client-timeout-ms", 5_000);
        callbackTimeoutNs = options.milliseconds("--callback-timeout-ms", 5_000);
    }

    /**
     * Serves until the process is asked to end.
     *
     * @param args see the README.
     */
    public static void main(final String[] args)
    {
        final Options options = new Options(args);
        final AtomicBoolean running = new AtomicBoolean(true);
        final Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(
            () ->
            {
                running.set(false);
                try
                {
                    main.join();
                }
                catch (final InterruptedException ignore)
                {
                    // The process ends in any case.
                }
            }));
        final IdleStrategy idle = options.idleStrategy();
        try (Aeron aeron = Aeron.connect(options.context()))
        {
            final Server server = new Server(aeron, options);
            options.end();
            System.out.println("serving");
            while (running.get())
            {
                idle.idle(server.doWork());
            }
        }
    }

    private int doWork()
    {
        int workCount = requests.poll(assembler, FRAGMENT_LIMIT);
        for (final Session session : sessions.values())
        {
            workCount += session.doWork(aeron, responseChannel);
        }
        final long now = System.nanoTime();
        if (now - nextHousekeeping >= 0)
        {
            nextHousekeeping = now + HOUSEKEEPING_NS;
            final Set<Long> images = new HashSet<>();
            requests.forEachImage(image -> images.add(image.correlationId()));
            sessions.values().removeIf(session ->
            {
                final boolean isGone = !images.contains(session.image());
                if (isGone)
                {
                    session.release();
                }
                return isGone;
            });
            for (final Session session : sessions.values())
            {
                session.checkDeadlines(now);
            }
        }
        return workCount;
    }

    private void onMessage(final DirectBuffer buffer, final int offset, final int length, final Header header)
    {
        final long image = ((Image)header.context()).correlationId();
        sessions.computeIfAbsent(image, id -> new Session(id, clientTimeoutNs, callbackTimeoutNs))
            .receive(buffer, offset, length);
    }
}

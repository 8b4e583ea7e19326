package crosslanguage;

import io.aeron.Aeron;
import io.aeron.ErrorCode;
import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.Subscription;
import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.RegistrationException;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
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
    /** New sessions, by the correlation id of the image of their requests. */
    private final Map<Long, Opening> opening = new LinkedHashMap<>();
    /** Others, by the correlation id of the image of their requests. */
    private final Map<Long, Session> sessions = new HashMap<>();
    private final FragmentAssembler assembler = new FragmentAssembler(this::onMessage);
    private final UnsafeBuffer message = new UnsafeBuffer(0, 0);
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
        if (!opening.isEmpty())
        {
            opening.values().removeIf(this::open);
        }
        for (final Session session : sessions.values())
        {
            workCount += session.sendQueue();
        }
        final long now = System.nanoTime();
        if (now - nextHousekeeping >= 0)
        {
            nextHousekeeping = now + HOUSEKEEPING_NS;
            final Set<Long> images = new HashSet<>();
            requests.forEachImage(image -> images.add(image.correlationId()));
            opening.keySet().retainAll(images);
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
        final Session session = sessions.get(image);
        if (session == null)
        {
            opening.computeIfAbsent(image, Opening::new).add(buffer, offset, length);
            return;
        }
        message.wrap(buffer, offset, length);
        session.receive(message);
    }

    /**
     * Opens the response channel of a new session. Returns false while the driver closes a socket: the last session over
     * UDP may have used the same.
     */
    private boolean open(final Opening opening)
    {
        final Session session = new Session(opening.image, clientTimeoutNs, callbackTimeoutNs);
        if (opening.bytes() > Session.QUEUE_LIMIT)
        {
            session.close("more than " + Session.QUEUE_LIMIT + " bytes wait for its channel");
        }
        else if (!opening.isDue())
        {
            return false;
        }
        else
        {
            try
            {
                final String channel = responseChannel + "|response-correlation-id=" + opening.image;
                session.open(aeron.addExclusivePublication(channel, Contract.RESPONSE_STREAM));
            }
            catch (final AeronException ex)
            {
                if (opening.waits(ex))
                {
                    return false;
                }
                session.close(ex.getMessage());
            }
        }
        opening.messages().forEach(session::receive);
        sessions.put(opening.image, session);
        return true;
    }

    /** A session whose response channel is not open yet. */
    private static final class Opening
    {
        /** How long a session waits while the driver closes its socket. */
        private static final long SOCKET_CLOSING_NS = 1_000_000_000;
        /** Time between two tries. */
        private static final long PAUSE_NS = 1_000_000;

        /** The correlation id of the image of the session's requests. */
        final long image;
        /** Messages that have arrived meanwhile. */
        private final List<DirectBuffer> messages = new ArrayList<>();
        private int bytes;
        private boolean isWaiting;
        private long nextTry = System.nanoTime();
        private long deadline;

        Opening(final long image)
        {
            this.image = image;
        }

        void add(final DirectBuffer buffer, final int offset, final int length)
        {
            final byte[] message = new byte[length];
            buffer.getBytes(offset, message);
            messages.add(new UnsafeBuffer(message));
            bytes += length;
        }

        List<DirectBuffer> messages()
        {
            return messages;
        }

        int bytes()
        {
            return bytes;
        }

        boolean isDue()
        {
            return System.nanoTime() - nextTry >= 0;
        }

        /** Returns false if another try does not help. */
        boolean waits(final AeronException error)
        {
            final long now = System.nanoTime();
            if (!(error instanceof RegistrationException) ||
                ((RegistrationException)error).errorCode() != ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE ||
                isWaiting && now - deadline >= 0)
            {
                return false;
            }
            if (!isWaiting)
            {
                System.err.println("session " + image + " waits: " + error.getMessage());
                isWaiting = true;
                deadline = now + SOCKET_CLOSING_NS;
            }
            nextTry = now + PAUSE_NS;
            return true;
        }
    }
}

import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.concurrent.AgentTerminationException;
import org.agrona.concurrent.UnsafeBuffer;

import java.io.ByteArrayOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * The twin of the ledger in lab/support/src/cluster/ledger, which says what it does. Digests, answers and
 * snapshots are equal to the byte. The property {@code rusteron.digests} names the file of digests.
 */
final class LedgerService extends EchoService
{
    private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
    private static final long EMPTY = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;
    private static final int EVENTS_PER_LINE = 100;
    private static final long PERIOD = 16;
    private static final long DELAY = 20;
    private static final long NEVER = 365L * 24 * 3600 * 1000;
    private static final int SNAPSHOT_MESSAGE_LENGTH = 1024;

    private final ExpandableArrayBuffer reply = new ExpandableArrayBuffer();
    private final UnsafeBuffer number = new UnsafeBuffer(new byte[8]);
    private final FileOutputStream file;

    private long count;
    private long digest = EMPTY;
    private long position;
    private long timersSet;
    private long timersFired;
    private long messagesSent;
    private long messagesReceived;
    private final TreeMap<Long, Long> timers = new TreeMap<>();
    private final TreeMap<Long, Long> numbers = new TreeMap<>();

    LedgerService() throws IOException
    {
        file = new FileOutputStream(System.getProperty("rusteron.digests"), true);
    }

    public void onSessionOpen(final ClientSession session, final long timestamp)
    {
        digest('o', timestamp, session.id(), new byte[0]);
    }

    public void onSessionClose(final ClientSession session, final long timestamp, final CloseReason closeReason)
    {
        digest('c', timestamp, session.id(), new byte[]{ (byte)closeReason.value() });
    }

    public void onSessionMessage(
        final ClientSession session,
        final long timestamp,
        final DirectBuffer buffer,
        final int offset,
        final int length,
        final Header header)
    {
        final byte[] message = new byte[length];
        buffer.getBytes(offset, message);
        // There is one service, 0.
        digest('m', timestamp, session == null ? -1 : session.id(), message);
        if (session != null)
        {
            obey(session, timestamp, message);
        }
        else if (length != 8 || buffer.getLong(offset, ORDER) != ++messagesReceived)
        {
            fail("message to itself, expected " + messagesReceived);
        }
    }

    private void obey(final ClientSession session, final long timestamp, final byte[] message)
    {
        if (message.length < 9)
        {
            fail("unknown command");
        }
        final long id = new UnsafeBuffer(message).getLong(1, ORDER);
        if (message[0] == 'n')
        {
            final long next = numbers.size() + 1;
            final Long known = numbers.putIfAbsent(id, next);
            if (known == null)
            {
                act(timestamp, next);
            }
            reply.putLong(0, known == null ? next : known, ORDER);
            reply.putBytes(8, message);
            reply.putLong(8 + message.length, position, ORDER);
            reply.putLong(16 + message.length, digest, ORDER);
            answer(session, reply, 0, 24 + message.length);
        }
        else if (message[0] == 's')
        {
            final long[] state = {
                count, digest, position, timersSet, timersFired, messagesSent, messagesReceived, numbers.size() };
            reply.putBytes(0, message);
            for (int i = 0; i < state.length; i++)
            {
                reply.putLong(message.length + 8 * i, state[i], ORDER);
            }
            answer(session, reply, 0, message.length + 8 * state.length);
        }
        else
        {
            fail("unknown command");
        }
    }

    private void act(final long timestamp, final long request)
    {
        switch ((int)(request % PERIOD))
        {
            case 3:
                timers.put(++timersSet, timestamp + DELAY);
                schedule(timersSet, timestamp + DELAY);
                break;
            case 7:
                number.putLong(0, ++messagesSent, ORDER);
                while (cluster.offer(number, 0, 8) < 0)
                {
                    cluster.idleStrategy().idle();
                }
                break;
            case 11:
                schedule(-request, timestamp + NEVER);
                while (!cluster.cancelTimer(-request))
                {
                    cluster.idleStrategy().idle();
                }
                break;
            default:
        }
    }

    private void schedule(final long id, final long deadline)
    {
        while (!cluster.scheduleTimer(id, deadline))
        {
            cluster.idleStrategy().idle();
        }
    }

    public void onTimerEvent(final long correlationId, final long timestamp)
    {
        final long[] ids = cluster.clientSessions().stream().mapToLong(ClientSession::id).sorted().toArray();
        final ByteBuffer sessions = ByteBuffer.allocate(8 * ids.length).order(ORDER);
        for (final long id : ids)
        {
            sessions.putLong(id);
        }
        digest('t', timestamp, correlationId, sessions.array());
        timersFired++;
        final Long deadline = timers.remove(correlationId);
        if (deadline == null || deadline > timestamp)
        {
            fail("timer " + correlationId + " at " + timestamp + ", set for " + deadline);
        }
    }

    public void onNewLeadershipTermEvent(
        final long leadershipTermId,
        final long logPosition,
        final long timestamp,
        final long termBaseLogPosition,
        final int leaderMemberId,
        final int logSessionId,
        final TimeUnit timeUnit,
        final int appVersion)
    {
        digest('l', timestamp, leadershipTermId, new byte[0]);
    }

    public void onStart(final Cluster cluster, final Image snapshotImage)
    {
        super.onStart(cluster, snapshotImage);
        if (snapshotImage == null)
        {
            return;
        }
        // The fragments of messages are a stream.
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        while (!snapshotImage.isEndOfStream())
        {
            final int fragments = snapshotImage.poll(
                (buffer, offset, length, header) ->
                {
                    final byte[] fragment = new byte[length];
                    buffer.getBytes(offset, fragment);
                    bytes.writeBytes(fragment);
                },
                10);
            if (fragments == 0 && snapshotImage.isClosed())
            {
                throw new IllegalStateException("the snapshot ends at " + snapshotImage.position());
            }
            cluster.idleStrategy().idle(fragments);
        }
        final ByteBuffer state = ByteBuffer.wrap(bytes.toByteArray()).order(ORDER);
        count = state.getLong();
        digest = state.getLong();
        position = state.getLong();
        timersSet = state.getLong();
        timersFired = state.getLong();
        messagesSent = state.getLong();
        messagesReceived = state.getLong();
        load(state, timers);
        load(state, numbers);
        if (state.hasRemaining())
        {
            throw new IllegalStateException("the snapshot has " + state.remaining() + " bytes more");
        }
        Node.print("loaded " + count + " events");
        note();
    }

    private static void load(final ByteBuffer state, final Map<Long, Long> map)
    {
        for (long entries = state.getLong(); entries > 0; entries--)
        {
            map.put(state.getLong(), state.getLong());
        }
    }

    public void onTakeSnapshot(final ExclusivePublication snapshotPublication)
    {
        note();
        final ByteBuffer state = ByteBuffer.allocate(8 * (9 + 2 * timers.size() + 2 * numbers.size())).order(ORDER);
        state.putLong(count).putLong(digest).putLong(position).putLong(timersSet).putLong(timersFired)
            .putLong(messagesSent).putLong(messagesReceived);
        store(state, timers);
        store(state, numbers);
        final UnsafeBuffer bytes = new UnsafeBuffer(state.array());
        for (int offset = 0; offset < bytes.capacity(); offset += SNAPSHOT_MESSAGE_LENGTH)
        {
            final int length = Math.min(SNAPSHOT_MESSAGE_LENGTH, bytes.capacity() - offset);
            while (snapshotPublication.offer(bytes, offset, length) < 0)
            {
                cluster.idleStrategy().idle();
            }
        }
    }

    private static void store(final ByteBuffer state, final Map<Long, Long> map)
    {
        state.putLong(map.size());
        map.forEach((key, value) -> state.putLong(key).putLong(value));
    }

    private void digest(final char kind, final long timestamp, final long of, final byte[] bytes)
    {
        position = cluster.logPosition();
        final ByteBuffer event = ByteBuffer.allocate(25 + bytes.length).order(ORDER);
        event.put((byte)kind).putLong(position).putLong(timestamp).putLong(of).put(bytes);
        for (final byte b : event.array())
        {
            digest = (digest ^ (b & 0xff)) * FNV_PRIME;
        }
        if (++count % EVENTS_PER_LINE == 0)
        {
            note();
        }
    }

    /** Appends a line by one call, so that a kill leaves no half of it. */
    private void note()
    {
        try
        {
            file.write(String.format("%d %016x%n", position, digest).getBytes(StandardCharsets.US_ASCII));
        }
        catch (final IOException ex)
        {
            throw new UncheckedIOException(ex);
        }
    }

    /** Ends the member, so that the failure is seen. */
    private static void fail(final String text)
    {
        Node.print("ledger: " + text);
        throw new AgentTerminationException(text);
    }
}

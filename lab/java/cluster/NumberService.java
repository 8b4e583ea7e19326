import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.collections.Long2LongHashMap;

import java.nio.ByteOrder;

/**
 * Obeys commands of tests. The first byte of a message is the command. Numbers are little endian.
 *
 * <ul>
 * <li>{@code n} ID(8) ...: numbers the request. The answer is NUMBER(8), then the request. The first request with an
 * ID gets the next number, from 1 on. Later requests with this ID get the same number again.</li>
 * <li>{@code t}: the answer is the total of requests (8), repeated ones included, then the last NUMBER (8).</li>
 * <li>{@code b} LENGTH(4): the answer has this length. Byte i is 7 i.</li>
 * <li>{@code p}: the answer is the principal of the session.</li>
 * <li>{@code c}: closes the session.</li>
 * </ul>
 *
 * Other messages are answered with {@code unknown}. Snapshots keep the numbers.
 */
final class NumberService extends EchoService
{
    private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
    private static final long MISSING = -1;
    private static final int NUMBERS_IN_MESSAGE = 64;
    private static final byte[] UNKNOWN = "unknown".getBytes();

    private final Long2LongHashMap numbers = new Long2LongHashMap(MISSING);
    private final ExpandableArrayBuffer reply = new ExpandableArrayBuffer();
    private long requests;

    public void onSessionMessage(
        final ClientSession session,
        final long timestamp,
        final DirectBuffer buffer,
        final int offset,
        final int length,
        final Header header)
    {
        switch (length > 0 ? buffer.getByte(offset) : 0)
        {
            case 'n':
                reply.putLong(0, number(buffer.getLong(offset + 1, ORDER)), ORDER);
                reply.putBytes(8, buffer, offset, length);
                answer(session, reply, 0, 8 + length);
                break;
            case 't':
                reply.putLong(0, requests, ORDER);
                reply.putLong(8, numbers.size(), ORDER);
                answer(session, reply, 0, 16);
                break;
            case 'b':
                final int replyLength = buffer.getInt(offset + 1, ORDER);
                for (int i = 0; i < replyLength; i++)
                {
                    reply.putByte(i, (byte)(7 * i));
                }
                answer(session, reply, 0, replyLength);
                break;
            case 'p':
                reply.putBytes(0, session.encodedPrincipal());
                answer(session, reply, 0, session.encodedPrincipal().length);
                break;
            case 'c':
                session.close();
                break;
            default:
                reply.putBytes(0, UNKNOWN);
                answer(session, reply, 0, UNKNOWN.length);
        }
    }

    private long number(final long id)
    {
        requests++;
        long number = numbers.get(id);
        if (number == MISSING)
        {
            number = numbers.size() + 1;
            numbers.put(id, number);
        }
        return number;
    }

    public void onStart(final Cluster cluster, final Image snapshotImage)
    {
        super.onStart(cluster, snapshotImage);
        if (snapshotImage == null)
        {
            return;
        }
        while (!snapshotImage.isEndOfStream())
        {
            final int fragments = snapshotImage.poll(this::load, 10);
            if (fragments == 0 && snapshotImage.isClosed())
            {
                throw new IllegalStateException("the snapshot ends at " + snapshotImage.position());
            }
            cluster.idleStrategy().idle(fragments);
        }
    }

    private void load(final DirectBuffer buffer, final int offset, final int length, final Header header)
    {
        requests = buffer.getLong(offset, ORDER);
        for (int i = offset + 8; i < offset + length; i += 16)
        {
            numbers.put(buffer.getLong(i, ORDER), buffer.getLong(i + 8, ORDER));
        }
    }

    public void onTakeSnapshot(final ExclusivePublication snapshotPublication)
    {
        int length = 8;
        reply.putLong(0, requests, ORDER);
        final Long2LongHashMap.EntryIterator entries = numbers.entrySet().iterator();
        while (entries.hasNext())
        {
            entries.next();
            reply.putLong(length, entries.getLongKey(), ORDER);
            reply.putLong(length + 8, entries.getLongValue(), ORDER);
            length += 16;
            if (length >= 8 + 16 * NUMBERS_IN_MESSAGE)
            {
                store(snapshotPublication, length);
                length = 8;
            }
        }
        store(snapshotPublication, length);
    }

    private void store(final ExclusivePublication publication, final int length)
    {
        long result;
        while ((result = publication.offer(reply, 0, length)) < 0)
        {
            if (result != Publication.BACK_PRESSURED && result != Publication.ADMIN_ACTION)
            {
                throw new IllegalStateException("snapshot: " + Publication.errorString(result));
            }
            cluster.idleStrategy().idle();
        }
    }
}

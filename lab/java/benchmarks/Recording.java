import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.ImageFragmentAssembler;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ArchiveException;
import io.aeron.archive.status.RecordingPos;
import org.agrona.BufferUtil;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.YieldingIdleStrategy;
import org.agrona.concurrent.status.CountersReader;

import java.io.IOException;

/**
 * The contender of recording: records messages with a running archive and replays them. The loops are those
 * of Aeron's samples EmbeddedRecordingThroughput and EmbeddedReplayThroughput. The warm-up repeats WARMUP messages until
 * WARMUP_NS have passed. The measurement then runs RECORDINGS times with MESSAGES messages. Each run prints
 *
 * <pre>
 * ready
 * recorded NANOSECONDS
 * replayed NANOSECONDS
 * </pre>
 *
 * and waits for a line on its standard input after each printed line. Ends at once when its standard input is closed.
 */
public class Recording
{
    private static final long DEADLINE_NS = 60_000_000_000L;

    private final Aeron aeron;
    private final AeronArchive archive;
    private final String channel;
    private final int streamId;
    private final int fragmentLimit;
    private final UnsafeBuffer buffer;
    private final IdleStrategy idleStrategy = YieldingIdleStrategy.INSTANCE;
    private long recordingId;
    private long recordedBytes;
    private long received;

    public static void main(final String[] args) throws IOException
    {
        Contender.checkArguments(args, "Recording DIR CHANNEL STREAM_ID MESSAGE_LENGTH FRAGMENT_LIMIT" +
            " WARMUP WARMUP_NS RECORDINGS MESSAGES");
        final int warmup = Integer.parseInt(args[5]);
        final long warmupNs = Long.parseLong(args[6]);
        final int recordings = Integer.parseInt(args[7]);
        final long messages = Long.parseLong(args[8]);

        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[0]));
            AeronArchive archive = AeronArchive.connect(new AeronArchive.Context()
                .aeron(aeron)
                .ownsAeronClient(false)
                .messageTimeoutNs(DEADLINE_NS)
                .controlRequestChannel("aeron:ipc")
                .controlResponseChannel("aeron:ipc")))
        {
            final Recording recording = new Recording(
                aeron, archive, args[1], Integer.parseInt(args[2]), Integer.parseInt(args[3]), Integer.parseInt(args[4]));
            final long start = System.nanoTime();
            do
            {
                recording.record(warmup);
                recording.replay(warmup);
                recording.purge();
            }
            while (System.nanoTime() - start < warmupNs);

            for (int i = 0; i < recordings; i++)
            {
                answer("ready");
                final long recordNs = recording.record(messages);
                answer("recorded " + recordNs);
                answer("replayed " + recording.replay(messages));
                recording.purge();
            }
        }
    }

    private Recording(
        final Aeron aeron,
        final AeronArchive archive,
        final String channel,
        final int streamId,
        final int messageLength,
        final int fragmentLimit)
    {
        this.aeron = aeron;
        this.archive = archive;
        this.channel = channel;
        this.streamId = streamId;
        this.fragmentLimit = fragmentLimit;
        buffer = new UnsafeBuffer(BufferUtil.allocateDirectAligned(messageLength, 64));
    }

    private long record(final long messages)
    {
        try (ExclusivePublication publication = archive.addRecordedExclusivePublication(channel, streamId))
        {
            final CountersReader counters = aeron.countersReader();
            final long deadline = System.nanoTime() + DEADLINE_NS;
            int counterId;
            while ((counterId = RecordingPos.findCounterIdBySession(
                counters, publication.sessionId(), archive.archiveId())) < 0)
            {
                await("the recording", deadline);
            }
            recordingId = RecordingPos.getRecordingId(counters, counterId);
            while (!publication.isConnected())
            {
                await("the recorder", deadline);
            }

            final long start = System.nanoTime();
            for (long i = 0; i < messages; i++)
            {
                buffer.putLong(0, i);
                idleStrategy.reset();
                while (!Contender.isAccepted(publication.offer(buffer, 0, buffer.capacity())))
                {
                    idleStrategy.idle();
                }
            }
            recordedBytes = publication.position();
            idleStrategy.reset();
            while (counters.getCounterValue(counterId) < recordedBytes)
            {
                idleStrategy.idle();
            }
            final long elapsed = System.nanoTime() - start;
            archive.stopRecording(publication);
            while (RecordingPos.isActive(counters, counterId, recordingId))
            {
                await("the end of the recording", start + elapsed + DEADLINE_NS);
            }
            return elapsed;
        }
    }

    /** Purges the recording. The archive refuses until it has noticed the end of the replay. */
    private void purge()
    {
        final long deadline = System.nanoTime() + DEADLINE_NS;
        while (true)
        {
            try
            {
                archive.purgeRecording(recordingId);
                return;
            }
            catch (final ArchiveException exception)
            {
                await(exception.getMessage(), deadline);
            }
        }
    }

    private long replay(final long messages)
    {
        received = 0;
        final long start = System.nanoTime();
        try (Subscription subscription = archive.replay(recordingId, 0, recordedBytes, "aeron:ipc", streamId + 1))
        {
            final long deadline = start + DEADLINE_NS;
            while (!subscription.isConnected())
            {
                await("the replay", deadline);
            }
            final Image image = subscription.imageAtIndex(0);
            final ImageFragmentAssembler assembler = new ImageFragmentAssembler((buffer, offset, length, header) ->
            {
                if (buffer.getLong(offset) != received)
                {
                    throw new IllegalStateException("message " + buffer.getLong(offset) + " for " + received);
                }
                received++;
            });
            idleStrategy.reset();
            while (received < messages)
            {
                final int fragments = image.poll(assembler, fragmentLimit);
                if (0 == fragments && image.isClosed())
                {
                    throw new IllegalStateException("the replay ends after " + received + " messages");
                }
                idleStrategy.idle(fragments);
            }
            return System.nanoTime() - start;
        }
    }

    private void await(final String what, final long deadline)
    {
        if (System.nanoTime() - deadline > 0)
        {
            throw new IllegalStateException("waited in vain: " + what);
        }
        idleStrategy.idle();
    }

    private static void answer(final String line) throws IOException
    {
        System.out.println(line);
        int character;
        while ((character = System.in.read()) != '\n')
        {
            if (character < 0)
            {
                Runtime.getRuntime().halt(0);
            }
        }
    }
}

package io.aeron.archive;

import static io.aeron.AeronCounters.*;

import io.aeron.Aeron;
import io.aeron.Counter;
import io.aeron.archive.checksum.Checksum;
import io.aeron.archive.checksum.Checksums;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ArchiveException;
import io.aeron.security.DefaultAuthenticatorSupplier;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.agrona.CloseHelper;
import org.agrona.concurrent.SystemEpochClock;
import org.agrona.concurrent.SystemNanoClock;
import org.agrona.concurrent.status.AtomicCounter;
import org.opentest4j.TestAbortedException;

/**
 * The program that Aeron's tests of Java's archive run instead of it: `.ci/aeron-archive-tests --java-suite` makes
 * `Archive.launch` call {@link #launch}. Settings of the context become properties, and what a test reads from the context
 * is looked up from outside. A test that hands the archive an object of its JVM is aborted, with the reason.
 */
final class ArchiveProcess implements AutoCloseable
{
    private static final long DEADLINE_NS = TimeUnit.SECONDS.toNanos(20);

    private final Process process;
    private final Thread reader;
    private final List<String> lines = new ArrayList<>();
    private Aeron aeron;

    private ArchiveProcess(final Archive.Context ctx)
    {
        final List<String> command = new ArrayList<>();
        command.add(System.getProperty("rusteron.archive"));
        properties(ctx).forEach((line) -> command.add("-D" + line));
        try
        {
            process = new ProcessBuilder(command)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        }
        catch (final IOException ex)
        {
            throw new UncheckedIOException(ex);
        }
        reader = new Thread(this::read, "archive-stderr");
        reader.setDaemon(true);
        reader.start();
    }

    static ArchiveProcess launch(final Archive.Context ctx)
    {
        requireSettingsOfAProcess(ctx);
        final ArchiveProcess archive = new ArchiveProcess(ctx);
        try
        {
            archive.awaitStart(ctx);
            return archive;
        }
        catch (final Throwable ex)
        {
            archive.close();
            throw ex;
        }
    }

    private static void requireSettingsOfAProcess(final Archive.Context ctx)
    {
        require(ArchiveThreadingMode.INVOKER != ctx.threadingMode(), "the test runs the archive's agent");
        require(
            null == ctx.epochClock() || SystemEpochClock.INSTANCE == ctx.epochClock(),
            "the test sets the archive's clock");
        require(
            null == ctx.nanoClock() || SystemNanoClock.INSTANCE == ctx.nanoClock(),
            "the test sets the archive's clock");
        require(
            null == ctx.authenticatorSupplier() ||
            DefaultAuthenticatorSupplier.class == ctx.authenticatorSupplier().getClass(),
            "the test has an authenticator of its own");
        require(null == ctx.authorisationServiceSupplier(), "the test has an authorisation service of its own");
        require(null == ctx.threadFactory(), "the test makes the archive's threads");
    }

    private static void require(final boolean isSo, final String otherwise)
    {
        if (!isSo)
        {
            throw new TestAbortedException("not from outside: " + otherwise);
        }
    }

    private static List<String> properties(final Archive.Context ctx)
    {
        final List<String> lines = new ArrayList<>();
        final String[][] settings = {
            { "aeron.dir", ctx.aeronDirectoryName() },
            { "aeron.archive.dir", ctx.archiveDir().getPath() },
            { "aeron.archive.mark.file.dir", ctx.markFileDir().getPath() },
            { "aeron.archive.id", Long.toString(ctx.archiveId()) },
            { "aeron.archive.control.channel.enabled", Boolean.toString(ctx.controlChannelEnabled()) },
            { "aeron.archive.control.channel", ctx.controlChannel() },
            { "aeron.archive.control.stream.id", Integer.toString(ctx.controlStreamId()) },
            { "aeron.archive.local.control.channel", ctx.localControlChannel() },
            { "aeron.archive.local.control.stream.id", Integer.toString(ctx.localControlStreamId()) },
            { "aeron.archive.control.term.buffer.sparse", Boolean.toString(ctx.controlTermBufferSparse()) },
            { "aeron.archive.control.term.buffer.length", Integer.toString(ctx.controlTermBufferLength()) },
            { "aeron.archive.control.mtu.length", Integer.toString(ctx.controlMtuLength()) },
            { "aeron.archive.recording.events.enabled", Boolean.toString(ctx.recordingEventsEnabled()) },
            { "aeron.archive.recording.events.channel", ctx.recordingEventsChannel() },
            { "aeron.archive.recording.events.stream.id", Integer.toString(ctx.recordingEventsStreamId()) },
            { "aeron.archive.replication.channel", ctx.replicationChannel() },
            { "aeron.archive.connect.timeout", ctx.connectTimeoutNs() + "ns" },
            { "aeron.archive.session.liveness.check.interval", ctx.sessionLivenessCheckIntervalNs() + "ns" },
            { "aeron.archive.replay.linger.timeout", ctx.replayLingerTimeoutNs() + "ns" },
            { "aeron.archive.segment.file.length", Integer.toString(ctx.segmentFileLength()) },
            { "aeron.archive.file.io.max.length", Integer.toString(ctx.fileIoMaxLength()) },
            { "aeron.archive.file.sync.level", Integer.toString(ctx.fileSyncLevel()) },
            { "aeron.archive.catalog.file.sync.level", Integer.toString(ctx.catalogFileSyncLevel()) },
            { "aeron.archive.catalog.capacity", Long.toString(ctx.catalogCapacity()) },
            { "aeron.archive.low.storage.space.threshold", Long.toString(ctx.lowStorageSpaceThreshold()) },
            { "aeron.archive.max.concurrent.recordings", Integer.toString(ctx.maxConcurrentRecordings()) },
            { "aeron.archive.max.concurrent.replays", Integer.toString(ctx.maxConcurrentReplays()) },
            { "aeron.archive.threading.mode", ctx.threadingMode().name() },
            { "aeron.archive.error.buffer.length", Integer.toString(ctx.errorBufferLength()) },
            { "aeron.archive.record.checksum", name(ctx.recordChecksum()) },
            { "aeron.archive.replay.checksum", name(ctx.replayChecksum()) },
        };
        for (final String[] setting : settings)
        {
            if (null != setting[1])
            {
                lines.add(setting[0] + "=" + setting[1]);
            }
        }

        final AeronArchive.Context client = ctx.archiveClientContext();
        if (null != client)
        {
            lines.add("aeron.archive.message.timeout=" + client.messageTimeoutNs() + "ns");
            if (null != client.controlResponseChannel())
            {
                lines.add("aeron.archive.control.response.channel=" + client.controlResponseChannel());
            }
        }
        return lines;
    }

    private static String name(final Checksum checksum)
    {
        return null == checksum ? null : checksum == Checksums.crc32() ? "CRC-32" : "CRC-32C";
    }

    /**
     * Waits for the archive's counters, and puts into the context what tests ask it for.
     */
    private void awaitStart(final Archive.Context ctx)
    {
        aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(ctx.aeronDirectoryName()));
        final File markFile = new File(ctx.markFileDir(), ArchiveMarkFile.FILENAME);
        final long deadlineNs = System.nanoTime() + DEADLINE_NS;
        while (!isReady(markFile, ctx.archiveId()))
        {
            if (!process.isAlive() || System.nanoTime() - deadlineNs > 0)
            {
                throw new ArchiveException("the archive does not start: " + errors());
            }
            Thread.yield();
        }
        ctx
            .aeron(aeron)
            .totalWriteBytesCounter(counter(ctx, ARCHIVE_RECORDER_TOTAL_WRITE_BYTES_TYPE_ID))
            .totalWriteTimeCounter(counter(ctx, ARCHIVE_RECORDER_TOTAL_WRITE_TIME_TYPE_ID))
            .maxWriteTimeCounter(counter(ctx, ARCHIVE_RECORDER_MAX_WRITE_TIME_TYPE_ID))
            .totalReadBytesCounter(counter(ctx, ARCHIVE_REPLAYER_TOTAL_READ_BYTES_TYPE_ID))
            .totalReadTimeCounter(counter(ctx, ARCHIVE_REPLAYER_TOTAL_READ_TIME_TYPE_ID))
            .maxReadTimeCounter(counter(ctx, ARCHIVE_REPLAYER_MAX_READ_TIME_TYPE_ID))
            .errorCounter(new AtomicCounter(
                aeron.countersReader().valuesBuffer(), counter(ctx, ARCHIVE_ERROR_COUNT_TYPE_ID).id()))
            .controlSessionsCounter(counter(ctx, ARCHIVE_CONTROL_SESSIONS_TYPE_ID))
            .recordingSessionCounter(counter(ctx, ARCHIVE_RECORDING_SESSION_COUNT_TYPE_ID))
            .replaySessionCounter(counter(ctx, ARCHIVE_REPLAY_SESSION_COUNT_TYPE_ID));
        ctx.catalog(new Catalog(ctx.archiveDir(), SystemEpochClock.INSTANCE));
    }

    private boolean isReady(final File markFile, final long archiveId)
    {
        final int counterId =
            ArchiveCounters.find(aeron.countersReader(), ARCHIVE_REPLAY_SESSION_COUNT_TYPE_ID, archiveId);
        if (Aeron.NULL_VALUE == counterId || !markFile.exists())
        {
            return false;
        }
        try (ArchiveMarkFile file = new ArchiveMarkFile(
            markFile.getParentFile(), markFile.getName(), SystemEpochClock.INSTANCE, 100, (line) -> {}))
        {
            return file.decoder().activityTimestamp() > 0 && file.decoder().archiveId() == archiveId;
        }
        catch (final RuntimeException ex)
        {
            return false;
        }
    }

    private Counter counter(final Archive.Context ctx, final int typeId)
    {
        return new Counter(
            aeron.countersReader(), ArchiveCounters.find(aeron.countersReader(), typeId, ctx.archiveId()));
    }

    private void read()
    {
        try (BufferedReader stderr = process.errorReader())
        {
            for (String line = stderr.readLine(); null != line; line = stderr.readLine())
            {
                System.err.println("archive " + process.pid() + ": " + line);
                synchronized (lines)
                {
                    lines.add(line);
                }
            }
        }
        catch (final IOException ignore)
        {
            // The process has ended.
        }
    }

    private String errors()
    {
        synchronized (lines)
        {
            return String.join("\n", lines);
        }
    }

    @Override
    public void close()
    {
        CloseHelper.quietClose(aeron);
        process.destroy();
        try
        {
            if (!process.waitFor(20, TimeUnit.SECONDS))
            {
                process.destroyForcibly().waitFor();
                throw new IllegalStateException("the archive does not end");
            }
            reader.join();
        }
        catch (final InterruptedException ex)
        {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Java's archive prints nothing, whatever a client does. Neither must another.
     */
    void requireNoLine()
    {
        final String errors = errors();
        if (!errors.isEmpty())
        {
            throw new IllegalStateException("lines on standard error: " + errors);
        }
    }
}

import io.aeron.archive.Archive;
import io.aeron.archive.ArchivingMediaDriver;
import io.aeron.archive.client.AeronArchive;
import io.aeron.driver.MediaDriver;
import org.agrona.concurrent.ShutdownSignalBarrier;

import java.util.concurrent.TimeUnit;

/**
 * Runs a media driver or, with the argument {@code archive}, an archive with its media driver, as the main classes of
 * Aeron do, but says when it is ready. System properties configure it.
 */
public final class Launch
{
    public static void main(final String[] args) throws Exception
    {
        try (ShutdownSignalBarrier barrier = new ShutdownSignalBarrier())
        {
            final MediaDriver.Context driver = new MediaDriver.Context().terminationHook(barrier::signalAll);
            try (AutoCloseable ignore = args.length == 0 ? launch(driver) : launchArchive(driver))
            {
                barrier.await();
                System.out.println("ending");
            }
        }
    }

    private static AutoCloseable launch(final MediaDriver.Context context)
    {
        final MediaDriver driver = MediaDriver.launch(context);
        System.out.println("media driver is ready: AERON_DIR=" + driver.aeronDirectoryName());
        return driver;
    }

    private static AutoCloseable launchArchive(final MediaDriver.Context context)
    {
        final ArchivingMediaDriver launched = ArchivingMediaDriver.launch(context, new Archive.Context());
        try
        {
            awaitAnswer(launched);
        }
        catch (final Throwable failure)
        {
            // Threads of the archive and the driver would keep the JVM alive, neither ready nor ended.
            try
            {
                launched.close();
            }
            catch (final Throwable onClose)
            {
                failure.addSuppressed(onClose);
            }
            throw failure;
        }
        return launched;
    }

    private static void awaitAnswer(final ArchivingMediaDriver launched)
    {
        final Archive.Context archive = launched.archive().context();
        final String dir = launched.mediaDriver().aeronDirectoryName();
        // An answer shows that the archive takes requests.
        AeronArchive.connect(new AeronArchive.Context()
            .aeronDirectoryName(dir)
            .messageTimeoutNs(TimeUnit.SECONDS.toNanos(60))
            .controlRequestChannel(archive.controlChannel())
            .controlRequestStreamId(archive.controlStreamId())
            .controlResponseChannel("aeron:udp?endpoint=localhost:0")).close();
        System.out.println("archive is ready: control channel " + archive.controlChannel() +
            ", recordings in " + archive.archiveDir() + ", media driver's AERON_DIR=" + dir);
    }
}

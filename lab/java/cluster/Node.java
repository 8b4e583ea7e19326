import io.aeron.archive.Archive;
import io.aeron.archive.client.AeronArchive;
import io.aeron.cluster.ClusterControl;
import io.aeron.cluster.ClusteredMediaDriver;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.service.ClusteredService;
import io.aeron.cluster.service.ClusteredServiceContainer;
import io.aeron.driver.MediaDriver;
import io.aeron.security.CredentialsSupplier;
import org.agrona.collections.ArrayUtil;
import org.agrona.ErrorHandler;
import org.agrona.concurrent.ShutdownSignalBarrier;
import org.agrona.concurrent.status.AtomicCounter;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.LocalTime;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A member of a cluster in one process: media driver, archive, consensus module and a service.
 *
 * <pre>Node SERVICE|none [stdin]</pre>
 *
 * With {@code -Drusteron.external=archive}, media driver and archive are another process.
 * {@code -Drusteron.archive.credentials=TEXT} are those of the consensus module for its archive.
 *
 * SERVICE is the name of a class with a constructor without arguments. {@code none} starts no service. Aeron's
 * properties configure everything else. Prints {@code started} when all parts run, errors as they happen, and
 * {@code stopped} at the end.
 *
 * SIGTERM ends the process in order. With {@code stdin}, each line of standard input is the name of a toggle of the
 * consensus module, such as {@code snapshot}, {@code suspend}, {@code resume}, {@code shutdown} or {@code abort}. The
 * end of standard input then ends the process at once, so that no process outlives a test.
 */
public final class Node
{
    public static void main(final String[] args) throws ReflectiveOperationException
    {
        if (args.length == 0 || args.length > 2 || (args.length == 2 && !"stdin".equals(args[1])))
        {
            System.err.println("usage: Node SERVICE|none [stdin]");
            System.exit(2);
        }
        final ClusteredService service = service(args[0]);
        // Before anything else, so that an early end of the test ends this process as well.
        final AtomicReference<AtomicCounter> toggle = new AtomicReference<>();
        if (args.length == 2)
        {
            toggleByStandardInput(toggle);
        }
        // SIGTERM waits until the barrier is closed.
        try (ShutdownSignalBarrier barrier = new ShutdownSignalBarrier())
        {
            run(barrier, service, toggle);
        }
    }

    private static void run(
        final ShutdownSignalBarrier barrier,
        final ClusteredService service,
        final AtomicReference<AtomicCounter> toggle)
    {
        final MediaDriver.Context driverContext = new MediaDriver.Context()
            .errorHandler(errorHandler("driver"))
            .terminationHook(barrier::signal);
        final Archive.Context archiveContext = new Archive.Context()
            .errorHandler(errorHandler("archive"));
        final ConsensusModule.Context moduleContext = new ConsensusModule.Context()
            .errorHandler(errorHandler("consensus module"))
            .terminationHook(barrier::signal);
        final String credentials = System.getProperty("rusteron.archive.credentials");
        if (credentials != null)
        {
            moduleContext.archiveContext(archiveContext(credentials));
        }
        final boolean isWhole = !"archive".equals(System.getProperty("rusteron.external"));
        try (ClusteredMediaDriver ignoredDriver =
                isWhole ? ClusteredMediaDriver.launch(driverContext, archiveContext, moduleContext) : null;
            ConsensusModule ignoredModule = isWhole ? null : ConsensusModule.launch(moduleContext);
            ClusteredServiceContainer ignoredContainer = service == null ? null : ClusteredServiceContainer.launch(
                new ClusteredServiceContainer.Context()
                    .clusteredService(service)
                    .errorHandler(errorHandler("service"))
                    .terminationHook(barrier::signal)))
        {
            toggle.set(moduleContext.controlToggleCounter());
            print("started");
            barrier.await();
        }
        print("stopped");
    }

    /** As the consensus module makes it, with credentials. */
    private static AeronArchive.Context archiveContext(final String credentials)
    {
        return new AeronArchive.Context()
            .controlRequestChannel(AeronArchive.Configuration.localControlChannel())
            .controlResponseChannel(AeronArchive.Configuration.localControlChannel())
            .controlRequestStreamId(AeronArchive.Configuration.localControlStreamId())
            .controlResponseStreamId(100 + AeronArchive.Configuration.controlResponseStreamId())
            .credentialsSupplier(new CredentialsSupplier()
            {
                public byte[] encodedCredentials()
                {
                    return credentials.getBytes();
                }

                public byte[] onChallenge(final byte[] encodedChallenge)
                {
                    return ArrayUtil.EMPTY_BYTE_ARRAY;
                }
            });
    }

    private static ClusteredService service(final String name) throws ReflectiveOperationException
    {
        return "none".equals(name) ? null :
            (ClusteredService)Class.forName(name).getDeclaredConstructor().newInstance();
    }

    /** Prints errors. Aeron's own handlers write them into buffers only. */
    private static ErrorHandler errorHandler(final String part)
    {
        return (error) ->
        {
            print(part + ": " + error);
            if (error instanceof Error || error instanceof NullPointerException)
            {
                error.printStackTrace();
            }
        };
    }

    static void toggleByStandardInput(final AtomicReference<AtomicCounter> toggle)
    {
        final Thread thread = new Thread(
            () ->
            {
                try
                {
                    final BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
                    String line;
                    while ((line = lines.readLine()) != null)
                    {
                        final AtomicCounter counter = toggle.get();
                        final boolean isAccepted = counter != null &&
                            ClusterControl.ToggleState.valueOf(line.toUpperCase()).toggle(counter);
                        print(line + (isAccepted ? " begins" : ": refused, because the member does not lead, or has a request"));
                    }
                }
                catch (final IOException ignore)
                {
                    // A failed read counts as the end.
                }
                Runtime.getRuntime().halt(0);
            },
            "standard-input");
        thread.setDaemon(true);
        thread.start();
    }

    static void print(final String line)
    {
        System.out.println(LocalTime.now() + " " + line);
    }
}

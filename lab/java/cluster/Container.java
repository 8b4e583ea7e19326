import io.aeron.cluster.service.ClusteredService;
import io.aeron.cluster.service.ClusteredServiceContainer;
import org.agrona.concurrent.ShutdownSignalBarrier;

import java.util.concurrent.atomic.AtomicReference;

/**
 * A service in a process of its own, beside a member that {@code Node none} starts.
 *
 * <pre>Container SERVICE</pre>
 *
 * SERVICE is the name of a class with a constructor without arguments. Aeron's properties configure everything else.
 * SIGTERM ends the process in order. The end of standard input ends the process at once.
 */
public final class Container
{
    public static void main(final String[] args) throws ReflectiveOperationException
    {
        if (args.length != 1)
        {
            System.err.println("usage: Container SERVICE");
            System.exit(2);
        }
        Node.toggleByStandardInput(new AtomicReference<>());
        final ClusteredService service =
            (ClusteredService)Class.forName(args[0]).getDeclaredConstructor().newInstance();
        try (ShutdownSignalBarrier barrier = new ShutdownSignalBarrier();
            ClusteredServiceContainer ignore = ClusteredServiceContainer.launch(
                new ClusteredServiceContainer.Context()
                    .clusteredService(service)
                    .errorHandler((error) -> Node.print("service: " + error))
                    .terminationHook(barrier::signal)))
        {
            barrier.await();
        }
    }
}

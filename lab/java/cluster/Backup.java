import io.aeron.cluster.ClusterBackup;
import org.agrona.concurrent.ShutdownSignalBarrier;

/**
 * A backup of a cluster, beside media driver and archive of another process. Aeron's properties configure it. SIGTERM ends
 * the process in order.
 */
public final class Backup
{
    public static void main(final String[] args)
    {
        try (ShutdownSignalBarrier barrier = new ShutdownSignalBarrier();
            ClusterBackup ignore = ClusterBackup.launch(
                new ClusterBackup.Context()
                    .errorHandler((error) -> Node.print("backup: " + error))
                    .terminationHook(barrier::signal)))
        {
            barrier.await();
        }
    }
}

import io.aeron.AeronVersion;
import org.agrona.concurrent.UnsafeBuffer;

/** Prints the versions and settings behind a result, in one line. */
public class Versions
{
    public static void main(final String[] args)
    {
        System.out.printf(
            "Java: Aeron %s on %s %s, bounds checks %s%n",
            AeronVersion.VERSION,
            System.getProperty("java.vm.name"),
            System.getProperty("java.vm.version"),
            UnsafeBuffer.SHOULD_BOUNDS_CHECK ? "on" : "off");
    }
}

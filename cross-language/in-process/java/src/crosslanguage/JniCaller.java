package crosslanguage;

import crosslanguage.codecs.Encoding;

/** Calls the service in this process over JNI. {@code jni.c} has the native methods. */
public final class JniCaller extends InProcessConnection
{
    static
    {
        System.loadLibrary("cross_language_jni");
    }

    private final long session = newSession();

    private JniCaller(final Encoding encoding)
    {
        super(encoding);
    }

    /**
     * Calls the service.
     *
     * @param args see the README.
     */
    public static void main(final String[] args)
    {
        main(args, JniCaller::new);
    }

    @Override
    int callLibrary(
        final byte operation, final byte encoding, final long argument, final long argumentLength,
        final long result, final long resultLength)
    {
        return call(session, operation, encoding, argument, argumentLength, result, resultLength);
    }

    @Override
    public void close()
    {
        freeSession(session);
    }

    private static native long newSession();

    private static native int call(
        long session, byte operation, byte encoding, long argument, long argumentLength,
        long result, long resultLength);

    private static native void freeSession(long session);
}

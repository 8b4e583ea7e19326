package crosslanguage;

import crosslanguage.codecs.Encoding;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Path;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

/** Calls the service in this process over the foreign function API. Addresses are passed as integers of 64 bits. */
public final class FfmCaller extends InProcessConnection
{
    private static final MethodHandle NEW_SESSION;
    private static final MethodHandle CALL;
    private static final MethodHandle FREE_SESSION;
    /** The library calls this stub, which lives as long as the program. */
    private static final MemorySegment ANSWER;

    static
    {
        final Linker linker = Linker.nativeLinker();
        final SymbolLookup library = SymbolLookup.libraryLookup(
            Path.of(System.getProperty("crosslanguage.library")), Arena.global());
        NEW_SESSION = linker.downcallHandle(
            library.findOrThrow("cross_language_session_new"), FunctionDescriptor.of(JAVA_LONG, ADDRESS, JAVA_LONG));
        CALL = linker.downcallHandle(
            library.findOrThrow("cross_language_call"),
            FunctionDescriptor.of(
                JAVA_INT, JAVA_LONG, JAVA_BYTE, JAVA_BYTE, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG));
        FREE_SESSION = linker.downcallHandle(
            library.findOrThrow("cross_language_session_free"), FunctionDescriptor.of(JAVA_INT, JAVA_LONG));
        try
        {
            final MethodHandle answer = MethodHandles.lookup().findStatic(
                FfmCaller.class,
                "answer",
                MethodType.methodType(int.class, long.class, long.class, MemorySegment.class));
            ANSWER = linker.upcallStub(
                answer,
                FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, ADDRESS.withTargetLayout(JAVA_LONG)),
                Arena.global());
        }
        catch (final ReflectiveOperationException ex)
        {
            throw new ExceptionInInitializerError(ex);
        }
    }

    private final long session;

    private FfmCaller(final Encoding encoding)
    {
        super(encoding);
        try
        {
            session = (long)NEW_SESSION.invokeExact(ANSWER, 0L);
        }
        catch (final Throwable ex)
        {
            throw new IllegalStateException(ex);
        }
    }

    /**
     * Calls the service.
     *
     * @param args see the README.
     */
    public static void main(final String[] args)
    {
        main(args, FfmCaller::new);
    }

    @Override
    int callLibrary(
        final byte operation, final byte encoding, final long argument, final long argumentLength,
        final long result, final long resultLength)
    {
        try
        {
            return (int)CALL.invokeExact(
                session, operation, encoding, argument, argumentLength, result, resultLength);
        }
        catch (final Throwable ex)
        {
            throw new IllegalStateException(ex);
        }
    }

    @Override
    public void close()
    {
        try
        {
            final int ignored = (int)FREE_SESSION.invokeExact(session);
        }
        catch (final Throwable ex)
        {
            throw new IllegalStateException(ex);
        }
    }

    /** Called by the library. No exception may pass through C. */
    private static int answer(final long context, final long argument, final MemorySegment answer)
    {
        try
        {
            answer.set(JAVA_LONG, 0, answer(argument));
            return 0;
        }
        catch (final Throwable ex)
        {
            return 1;
        }
    }
}

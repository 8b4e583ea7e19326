package crosslanguage;

import com.google.protobuf.CodedInputStream;
import crosslanguage.Contract.CallException;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.ByteBuffer;

/** The service in this process, over JNI. {@code in_process.c} has the native methods. */
final class InProcessTransport implements Transport
{
    private final long session = openSession();
    private final Bytes bytes = new Bytes();
    private final UnsafeBuffer message = new UnsafeBuffer(0, 0);

    /** Loads the libraries of a folder, once. */
    static void load(final String folder)
    {
        System.load(folder + "/libcross_language_jni.so");
    }

    @Override
    public void send(final Bytes request, final long deadline)
    {
        sendMessage(session, request.array, request.length);
    }

    @Override
    public CodedInputStream receive(final long deadline) throws CallException
    {
        final ByteBuffer received = receiveMessage(session);
        if (received == null)
        {
            throw new CallException("TIMED_OUT", "no response");
        }
        message.wrap(received);
        return bytes.read(message, 0, message.capacity());
    }

    @Override
    public void close()
    {
        closeSession(session);
    }

    private static native long openSession();

    private static native void sendMessage(long session, byte[] message, int length);

    /** Returns the message's memory, which lasts until the next call, or null. */
    private static native ByteBuffer receiveMessage(long session);

    private static native void closeSession(long session);
}

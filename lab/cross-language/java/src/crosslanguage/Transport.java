package crosslanguage;

import com.google.protobuf.CodedInputStream;
import crosslanguage.Contract.CallException;

/** Messages to a server and back, for one thread. Deadlines are times of {@link System#nanoTime()}. */
interface Transport extends AutoCloseable
{
    /** Sends a message. */
    void send(Bytes message, long deadline) throws CallException;

    /** Waits for a message, which lasts until the next call. */
    CodedInputStream receive(long deadline) throws CallException;

    @Override
    void close();
}

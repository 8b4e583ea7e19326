package crosslanguage;

import crosslanguage.Contract.CallException;
import org.agrona.DirectBuffer;

/** Messages to a server and back, for one thread. Deadlines are times of {@link System#nanoTime()}. */
interface Transport extends AutoCloseable
{
    /** Sends the first bytes of a buffer. */
    void send(DirectBuffer message, int length, long deadline) throws CallException;

    /** Waits for a message. The buffer is the message, and lasts until the next call. */
    DirectBuffer receive(long deadline) throws CallException;

    @Override
    void close();
}

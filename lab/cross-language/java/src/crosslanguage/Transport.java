package crosslanguage;

import crosslanguage.Contract.CallException;
import crosslanguage.protocol.Response;

/** Messages to a server and back, for one thread. Deadlines are times of {@link System#nanoTime()}. */
interface Transport extends AutoCloseable
{
    /** Sends a message. */
    void send(Bytes message, long deadline) throws CallException;

    /** Waits for a message. */
    Response receive(long deadline) throws CallException;

    @Override
    void close();
}

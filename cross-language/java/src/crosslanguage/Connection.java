package crosslanguage;

import crosslanguage.codecs.Operation;

/** A connection of a caller's program with a server, for one thread. */
interface Connection extends AutoCloseable
{
    /** Connects. */
    interface Factory
    {
        Connection connect() throws Exception;
    }

    /** Calls an operation and waits for its result. Kinds of arguments and results: {@link Kind}. */
    Object call(Operation operation, Object argument) throws CallException, FailureException;

    @Override
    void close();
}

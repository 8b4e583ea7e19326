package crosslanguage;

import crosslanguage.Contract.CallException;
import crosslanguage.Contract.FailureException;
import crosslanguage.protocol.Request;
import crosslanguage.protocol.Response;

/** A session with a server, for one thread. After a {@link CallException}, close it and connect anew. */
public final class Caller implements Modes.Connection
{
    private final Transport transport;
    private final long timeoutNs;
    private long nextCorrelationId = 1;
    private final Bytes bytes = new Bytes();

    private Caller(final Transport transport, final long timeoutNs)
    {
        this.transport = transport;
        this.timeoutNs = timeoutNs;
    }

    /**
     * Calls the service.
     *
     * @param args see the README.
     */
    public static void main(final String[] args)
    {
        final Options options = new Options(args);
        final String library = options.get("--in-process", null);
        if (library != null)
        {
            InProcessTransport.load(library);
        }
        Modes.run(options, timeoutNs -> new Caller(
            library == null ? new AeronTransport(options, timeoutNs) : new InProcessTransport(), timeoutNs));
    }

    @Override
    public Response call(final Request operation) throws CallException
    {
        final long deadline = System.nanoTime() + timeoutNs;
        final long correlationId = nextCorrelationId++;
        send(operation.toBuilder().setCorrelationId(correlationId), deadline);
        while (true)
        {
            final Response response = transport.receive(deadline);
            // Responses to earlier calls, which have timed out, are skipped.
            if (response.getCorrelationId() != correlationId)
            {
                continue;
            }
            if (!response.hasCallbackArgument())
            {
                return response;
            }
            final Request.Builder answer = Request.newBuilder().setCorrelationId(correlationId);
            try
            {
                answer.setCallbackResult(Modes.square(response.getCallbackArgument()));
            }
            catch (final FailureException ex)
            {
                answer.setCallbackError(ex.getMessage());
            }
            send(answer, deadline);
        }
    }

    private void send(final Request.Builder request, final long deadline) throws CallException
    {
        bytes.write(request.build());
        transport.send(bytes, deadline);
    }

    @Override
    public void close()
    {
        transport.close();
    }
}

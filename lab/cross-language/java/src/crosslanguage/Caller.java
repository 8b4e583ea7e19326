package crosslanguage;

import crosslanguage.Contract.CallException;
import crosslanguage.Contract.FailureException;
import crosslanguage.protocol.Request;
import crosslanguage.protocol.Response;

import java.io.IOException;

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
            final Response response = receive(deadline);
            // Id 0 says that the server could not read the request. Any other id is that of an
            // earlier call, which has timed out.
            if (response.getCorrelationId() != correlationId && response.getCorrelationId() != 0)
            {
                continue;
            }
            if (response.getOutcomeCase() == Response.OutcomeCase.OUTCOME_NOT_SET)
            {
                throw new CallException("MALFORMED_RESPONSE", "no known outcome");
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

    private Response receive(final long deadline) throws CallException
    {
        try
        {
            return Response.parseFrom(transport.receive(deadline));
        }
        catch (final IOException ex)
        {
            throw new CallException("MALFORMED_RESPONSE", ex.getMessage());
        }
    }

    @Override
    public void close()
    {
        transport.close();
    }
}

import io.aeron.security.AuthorisationService;
import io.aeron.security.AuthorisationServiceSupplier;

import java.util.Arrays;

/** Allows administration, such as snapshots, to the principal {@code operator} only. */
public final class OperatorAuthorisation implements AuthorisationService
{
    private static final byte[] OPERATOR = "operator".getBytes();

    /** Chosen by {@code aeron.cluster.authorisation.service.supplier}. */
    public static final class Supplier implements AuthorisationServiceSupplier
    {
        public AuthorisationService get()
        {
            return new OperatorAuthorisation();
        }
    }

    public boolean isAuthorised(
        final int protocolId, final int actionId, final Object type, final byte[] encodedPrincipal)
    {
        return Arrays.equals(OPERATOR, encodedPrincipal);
    }
}

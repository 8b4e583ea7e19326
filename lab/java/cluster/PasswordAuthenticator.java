import io.aeron.security.Authenticator;
import io.aeron.security.AuthenticatorSupplier;
import io.aeron.security.SessionProxy;

import java.util.HashMap;
import java.util.Map;

/**
 * Authenticates sessions of tests by the credentials of their connect request.
 *
 * <ul>
 * <li>{@code challenge:NAME}: challenges with {@code password of NAME?}, accepts {@code secret of NAME} as the answer, and
 * rejects others.</li>
 * <li>{@code reject...}: rejects at once.</li>
 * <li>others: accepts.</li>
 * </ul>
 *
 * The principal is NAME, or else the credentials.
 */
public final class PasswordAuthenticator implements Authenticator
{
    private final Map<Long, String> credentials = new HashMap<>();
    private final Map<Long, String> answers = new HashMap<>();

    /** Chosen by {@code aeron.cluster.authenticator.supplier}. */
    public static final class Supplier implements AuthenticatorSupplier
    {
        public Authenticator get()
        {
            return new PasswordAuthenticator();
        }
    }

    public void onConnectRequest(final long sessionId, final byte[] encodedCredentials, final long nowMs)
    {
        credentials.put(sessionId, new String(encodedCredentials));
    }

    public void onConnectedSession(final SessionProxy session, final long nowMs)
    {
        final String text = credentials.get(session.sessionId());
        if (text.startsWith("reject"))
        {
            session.reject();
        }
        else if (text.startsWith("challenge:"))
        {
            session.challenge(("password of " + name(text) + "?").getBytes());
        }
        else
        {
            session.authenticate(text.getBytes());
        }
    }

    public void onChallengeResponse(final long sessionId, final byte[] encodedCredentials, final long nowMs)
    {
        answers.put(sessionId, new String(encodedCredentials));
    }

    public void onChallengedSession(final SessionProxy session, final long nowMs)
    {
        final String answer = answers.get(session.sessionId());
        if (answer == null)
        {
            return; // It is called again and again.
        }
        final String name = name(credentials.get(session.sessionId()));
        if (answer.equals("secret of " + name))
        {
            session.authenticate(name.getBytes());
        }
        else
        {
            session.reject();
        }
    }

    private static String name(final String text)
    {
        return text.substring("challenge:".length());
    }
}

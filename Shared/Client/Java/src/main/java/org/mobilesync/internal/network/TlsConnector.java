package org.mobilesync.internal.network;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;
import org.mobilesync.SyncException;
import org.mobilesync.SyncIdentity;
import org.mobilesync.SyncTransport;
import org.mobilesync.SyncTrust;
import org.mobilesync.internal.connection.GatewayAddress;

/** Makes TLS connections to gateways (DeviceProtocol.md, Transport). */
public final class TlsConnector {
    private static final List<String> VERSIONS = Arrays.asList("TLSv1.2", "TLSv1.3");

    private final SSLSocketFactory factory;
    private final SyncTransport transport;
    private final int timeoutMs;

    /**
     * Creates a connector.
     *
     * @param identity the client certificate; null for none
     * @param timeoutMs the longest wait for each step: connecting, and each answer of the handshake
     * @throws SyncException TRUST when the platform refuses the authorities
     */
    public TlsConnector(SyncTrust trust, SyncIdentity identity, SyncTransport transport, int timeoutMs) {
        this.transport = transport;
        this.timeoutMs = timeoutMs;
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            KeyManager[] keys = identity == null ? null : identity.keyManagers();
            context.init(keys, new TrustManager[] {trustManager(trust)}, null);
            factory = context.getSocketFactory();
        } catch (GeneralSecurityException | IOException error) {
            throw new SyncException(SyncException.Code.TRUST,
                "this platform cannot use the certificate authorities (" + error.getMessage() + "); check their file",
                error);
        }
    }

    private static TrustManager trustManager(SyncTrust trust) throws GeneralSecurityException, IOException {
        KeyStore store = null;
        if (trust.authorities() != null) {
            store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            for (X509Certificate authority : trust.authorities()) {
                store.setCertificateEntry("authority-" + store.size(), authority);
            }
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        for (TrustManager manager : factory.getTrustManagers()) {
            if (manager instanceof X509ExtendedTrustManager) {
                return new GatewayTrustManager((X509ExtendedTrustManager) manager, trust.authorities());
            }
        }
        throw new CertificateException("the platform has no trust manager that checks host names");
    }

    /** Returns the transport of the connections. */
    SyncTransport transport() {
        return transport;
    }

    /**
     * Connects a socket and performs the TLS handshake, with a check of the host name.
     *
     * @param socket a new socket; closing it from another thread ends the attempt
     */
    SSLSocket connect(Socket socket, GatewayAddress address) throws IOException {
        socket.connect(new InetSocketAddress(address.host(), address.port()), timeoutMs);
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(timeoutMs);
        SSLSocket tls = (SSLSocket) factory.createSocket(socket, address.host(), address.port(), true);
        SSLParameters parameters = tls.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        ApplicationProtocol.offer(transport == SyncTransport.WEB_SOCKET ? "http/1.1" : "mss/1", parameters);
        tls.setSSLParameters(parameters);
        List<String> versions = new ArrayList<>(Arrays.asList(tls.getSupportedProtocols()));
        versions.retainAll(VERSIONS);
        tls.setEnabledProtocols(versions.toArray(new String[0]));
        tls.startHandshake();
        return tls;
    }

    /** Returns a text for developers about a failed connection. A refused certificate is described in full. */
    static String describe(Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            if (cause instanceof CertificateException) return cause.getMessage();
        }
        return error.getMessage() == null ? error.toString() : error.getMessage();
    }
}

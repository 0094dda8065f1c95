package org.mobilesync.internal.network;

import java.net.Socket;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.util.List;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.X509ExtendedTrustManager;

/** Checks a gateway's certificate as the platform does, and names the expected authority in a refusal. */
final class GatewayTrustManager extends X509ExtendedTrustManager {
    private final X509ExtendedTrustManager platform;
    /** The trusted authorities; null for those of the operating system. */
    private final List<X509Certificate> authorities;

    GatewayTrustManager(X509ExtendedTrustManager platform, List<X509Certificate> authorities) {
        this.platform = platform;
        this.authorities = authorities;
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String authType, Socket socket)
        throws CertificateException {
        try {
            platform.checkServerTrusted(chain, authType, socket);
        } catch (CertificateException error) {
            throw refusal(chain, error);
        }
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String authType, SSLEngine engine)
        throws CertificateException {
        try {
            platform.checkServerTrusted(chain, authType, engine);
        } catch (CertificateException error) {
            throw refusal(chain, error);
        }
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String authType) throws CertificateException {
        try {
            platform.checkServerTrusted(chain, authType);
        } catch (CertificateException error) {
            throw refusal(chain, error);
        }
    }

    private CertificateException refusal(X509Certificate[] chain, CertificateException error) {
        StringBuilder text = new StringBuilder("the gateway's certificate is refused (").append(error.getMessage());
        text.append("); it is for ").append(chain[0].getSubjectX500Principal().getName());
        text.append(" and was issued by ").append(chain[0].getIssuerX500Principal().getName());
        text.append("; expected: the host name, and the authority ");
        if (authorities == null) {
            text.append("of the operating system; pass a private authority with SyncTrust.authorityFile");
        } else {
            for (int index = 0; index < authorities.size(); index++) {
                if (index > 0) text.append(" or ");
                text.append(authorities.get(index).getSubjectX500Principal().getName());
            }
        }
        return new CertificateException(text.toString(), error);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String authType, Socket socket)
        throws CertificateException {
        platform.checkClientTrusted(chain, authType, socket);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String authType, SSLEngine engine)
        throws CertificateException {
        platform.checkClientTrusted(chain, authType, engine);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String authType) throws CertificateException {
        platform.checkClientTrusted(chain, authType);
    }

    @Override
    public X509Certificate[] getAcceptedIssuers() {
        return platform.getAcceptedIssuers();
    }
}

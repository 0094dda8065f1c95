package org.mobilesync;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** The certificate authorities that a client trusts when it connects. */
public final class SyncTrust {
    private final List<X509Certificate> authorities;

    private SyncTrust(List<X509Certificate> authorities) {
        this.authorities = authorities;
    }

    /** Trusts the authorities of the operating system. */
    public static SyncTrust system() {
        return new SyncTrust(null);
    }

    /**
     * Trusts only the authorities in a PEM file, for private installations.
     *
     * @throws SyncException TRUST when the file cannot be read or contains no certificate
     */
    public static SyncTrust authorityFile(String path) {
        try (InputStream in = Files.newInputStream(Paths.get(path))) {
            return authorities(in, path);
        } catch (IOException error) {
            throw new SyncException(SyncException.Code.TRUST,
                "the authority's file " + path + " cannot be read; check its path and access rights", error);
        }
    }

    /**
     * Trusts only the authorities in a PEM text, for example of {@code mss-ca.pem} in the app's assets.
     *
     * @param source the name of the text in error messages
     * @throws SyncException TRUST when the text contains no certificate
     */
    public static SyncTrust authorityText(byte[] pem, String source) {
        return authorities(new ByteArrayInputStream(pem), source);
    }

    private static SyncTrust authorities(InputStream in, String source) {
        List<X509Certificate> found = new ArrayList<>();
        try {
            for (Certificate certificate : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                found.add((X509Certificate) certificate);
            }
        } catch (CertificateException error) {
            throw new SyncException(SyncException.Code.TRUST,
                source + " is not a PEM text with certificates; ask the operator for the authority's file", error);
        }
        if (found.isEmpty()) {
            throw new SyncException(SyncException.Code.TRUST,
                source + " contains no certificate; ask the operator for the authority's file");
        }
        return new SyncTrust(Collections.unmodifiableList(found));
    }

    /** Returns the trusted authorities; null for those of the operating system. */
    public List<X509Certificate> authorities() {
        return authorities;
    }
}

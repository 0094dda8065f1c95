package org.mobilesync;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;

/** A client certificate for gateways that require one. */
public final class SyncIdentity {
    private static final String BEGIN = "-----BEGIN PRIVATE KEY-----";
    private static final String END = "-----END PRIVATE KEY-----";

    private final KeyManager[] keyManagers;

    private SyncIdentity(KeyManager[] keyManagers) {
        this.keyManagers = keyManagers;
    }

    /**
     * Reads the certificate and its key from PEM files.
     *
     * @param certificateFile the device's certificate, followed by the intermediate certificates
     * @param privateKeyFile the private key of the certificate, as PKCS #8 without a password
     * @throws SyncException TRUST when a file cannot be read, has another form, or the key is of another certificate
     */
    public static SyncIdentity files(String certificateFile, String privateKeyFile) {
        try (InputStream in = Files.newInputStream(Paths.get(certificateFile))) {
            Certificate[] chain =
                CertificateFactory.getInstance("X.509").generateCertificates(in).toArray(new Certificate[0]);
            if (chain.length == 0) throw new GeneralSecurityException("it contains no certificate");
            PrivateKey key = privateKey(privateKeyFile, chain[0].getPublicKey());
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            store.setKeyEntry("identity", key, new char[0], chain);
            return keyStore(store, new char[0]);
        } catch (IOException error) {
            throw new SyncException(SyncException.Code.TRUST, "the files of the client certificate cannot be read ("
                + error.getMessage() + "); check paths and access rights", error);
        } catch (GeneralSecurityException error) {
            throw new SyncException(SyncException.Code.TRUST, certificateFile + " cannot be used ("
                + error.getMessage() + "); it needs the device's certificate as PEM", error);
        }
    }

    /**
     * Uses the certificates of a key store, for example of a PKCS #12 file or of Android's key store.
     *
     * @param password the password of the keys
     * @throws SyncException TRUST when the platform cannot use the store, for example with another password
     */
    public static SyncIdentity keyStore(KeyStore store, char[] password) {
        try {
            KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            factory.init(store, password);
            return new SyncIdentity(factory.getKeyManagers());
        } catch (GeneralSecurityException error) {
            throw new SyncException(SyncException.Code.TRUST, "the key store of the client certificate cannot be used ("
                + error.getMessage() + "); check its password", error);
        }
    }

    private static PrivateKey privateKey(String file, PublicKey certified) throws IOException {
        String pem = new String(Files.readAllBytes(Paths.get(file)), StandardCharsets.US_ASCII);
        int begin = pem.indexOf(BEGIN);
        int end = pem.indexOf(END);
        try {
            if (begin < 0 || end < begin) throw new GeneralSecurityException("it has no " + BEGIN);
            byte[] bytes = Base64.getMimeDecoder().decode(pem.substring(begin + BEGIN.length(), end));
            PrivateKey key = KeyFactory.getInstance(certified.getAlgorithm())
                .generatePrivate(new PKCS8EncodedKeySpec(bytes));
            if (!isPair(key, certified)) throw new GeneralSecurityException("it is the key of another certificate");
            return key;
        } catch (GeneralSecurityException | IllegalArgumentException error) {
            throw new SyncException(SyncException.Code.TRUST, file + " cannot be used (" + error.getMessage()
                + "); it needs the certificate's key as PKCS #8, which openssl pkcs8 -topk8 -nocrypt makes", error);
        }
    }

    private static boolean isPair(PrivateKey key, PublicKey certified) throws GeneralSecurityException {
        String algorithm = certified.getAlgorithm().equals("EC") ? "SHA256withECDSA" : "SHA256withRSA";
        byte[] text = BEGIN.getBytes(StandardCharsets.US_ASCII);
        Signature signer = Signature.getInstance(algorithm);
        signer.initSign(key);
        signer.update(text);
        byte[] signature = signer.sign();
        signer.initVerify(certified);
        signer.update(text);
        return signer.verify(signature);
    }

    /** Returns the keys for a TLS context. For the library's own use. */
    public KeyManager[] keyManagers() {
        return keyManagers.clone();
    }
}

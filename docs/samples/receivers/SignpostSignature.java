// Java 17: `java SignpostSignature.java` starts a receiver. The Spring controller uses `verify`.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.function.UnaryOperator;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class SignpostSignature {
  static final int LIMIT = 4 * 1024 * 1024; // deliveries can exceed 1 MiB
  static final long TOLERANCE_S = 300;

  /** Reads the headers of recording and of the gateway; `header` returns null for a missing one. */
  public static boolean verify(String secret, UnaryOperator<String> header, byte[] body)
      throws GeneralSecurityException {
    if (secret == null || secret.isBlank() || secret.strip().equals("whsec_")) {
      return false; // not set: anyone could sign with it
    }
    String timestamp = header.apply("X-Recording-Timestamp");
    List<String> digests = new ArrayList<>();
    String recording = header.apply("X-Recording-Signature");
    String gateway = header.apply("X-Gateway-Signature");
    if (gateway != null) {
      timestamp = null;
      for (String part : gateway.split(",")) {
        String[] pair = part.strip().split("=", 2);
        if (pair.length < 2) continue;
        if (pair[0].equals("t")) timestamp = pair[1];
        if (pair[0].equals("v1")) digests.add(pair[1]);
      }
    } else if (recording != null && recording.startsWith("sha256=")) {
      digests.add(recording.substring("sha256=".length()));
    }
    if (timestamp == null || !timestamp.matches("[0-9]{1,12}")) return false;
    long now = System.currentTimeMillis() / 1000;
    if (Math.abs(now - Long.parseLong(timestamp)) > TOLERANCE_S) return false;
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
    mac.update((timestamp + ".").getBytes(StandardCharsets.UTF_8));
    byte[] expected = HexFormat.of().formatHex(mac.doFinal(body)).getBytes(StandardCharsets.UTF_8);
    boolean fits = false;
    for (String digest : digests) {
      fits |= MessageDigest.isEqual(expected, digest.getBytes(StandardCharsets.UTF_8));
    }
    return fits;
  }

  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.createContext("/hook", exchange -> {
      byte[] body = exchange.getRequestBody().readNBytes(LIMIT + 1);
      int status = 413;
      if (body.length <= LIMIT) {
        try {
          boolean genuine =
              verify(System.getenv("SIGNPOST_SECRET"), exchange.getRequestHeaders()::getFirst, body);
          status = genuine ? 204 : 401; // genuine: INSERT INTO inbox … ON CONFLICT (id) DO NOTHING
        } catch (GeneralSecurityException error) {
          status = 500;
        }
      }
      exchange.sendResponseHeaders(status, -1);
      exchange.close();
    });
    server.start();
  }
}

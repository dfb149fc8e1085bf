// Spring Boot: the controller takes the raw bytes, not a parsed object.
import jakarta.servlet.http.HttpServletRequest;
import java.security.GeneralSecurityException;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

@RestController
class SpringReceiver {
  @Value("${signpost.secret}")
  String secret;

  @PostMapping("/hook")
  ResponseEntity<Void> receive(@RequestBody byte[] body, HttpServletRequest request)
      throws GeneralSecurityException {
    if (!SignpostSignature.verify(secret, request::getHeader, body)) {
      return ResponseEntity.status(401).build();
    }
    // INSERT INTO inbox … ON CONFLICT (id) DO NOTHING
    return ResponseEntity.noContent().build();
  }
}

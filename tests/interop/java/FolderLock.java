import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import org.apache.kafka.server.util.FileLock;

/** Kafka's lock on a broker's folder, by commands on standard input: "lock" answers whether it got the lock, "unlock" that it is free. */
public class FolderLock {
    public static void main(String[] arguments) throws Exception {
        FileLock lock = new FileLock(new File(arguments[0]));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String command; (command = commands.readLine()) != null; ) {
            if (command.equals("lock")) {
                System.out.println(lock.tryLock());
            } else {
                lock.unlock();
                System.out.println("free");
            }
        }
        lock.destroy();
    }
}

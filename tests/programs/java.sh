# javac and java: threads, faults that become exceptions, garbage, a child process, files, a hook at the end.
d=$(mktemp -d); cd $d; export HOME=$d
cat >Hello.java <<'J'
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;

public class Hello {
    static int deep(int n) { return 1 + deep(n + 1); }

    public static void main(String[] args) throws Exception {
        System.out.println("hello " + args.length + " " + String.join(",", args));
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<Long>> sums = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            final int n = i;
            sums.add(pool.submit(() -> { long s = 0; for (int k = 0; k < 100000 * n; k++) s += k ^ n; return s; }));
        }
        long total = 0;
        for (Future<Long> s : sums) total += s.get();
        pool.shutdown();
        System.out.println("threads " + total + " " + pool.awaitTermination(10, TimeUnit.SECONDS));
        // Faults that the machine turns into exceptions.
        try { Object o = args.length > 5 ? "" : null; o.hashCode(); } catch (NullPointerException e) { System.out.println("null"); }
        try { deep(0); } catch (StackOverflowError e) { System.out.println("stack"); }
        try { System.out.println(1 / (args.length - 2)); } catch (ArithmeticException e) { System.out.println(e.getMessage()); }
        List<byte[]> garbage = new ArrayList<>();
        for (int i = 0; i < 2000; i++) { garbage.add(new byte[100000]); if (garbage.size() > 100) garbage.clear(); }
        System.gc();
        Process p = new ProcessBuilder("sh", "-c", "echo from a child; exit 4").inheritIO().start();
        System.out.println("child " + p.waitFor());
        Path f = Files.createTempFile(Path.of("."), "x", "y");
        Files.writeString(f, "text\n");
        System.out.println("file " + Files.readString(f).trim() + " " + Files.size(f));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        System.exit(6);
    }
}
J
javac Hello.java && java -cp . Hello a b; echo $?; ls *.class; cd /; rm -rf $d

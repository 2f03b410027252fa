import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Collections;
import kotlin.jvm.functions.Function0;
import kotlin.jvm.functions.Function1;
import org.example.ldpbayes.Campaign;
import org.example.ldpbayes.Device;
import org.example.ldpbayes.DeviceCampaign;
import org.example.ldpbayes.FileStorage;
import org.example.ldpbayes.NextStep;
import org.example.ldpbayes.Policy;
import org.example.ldpbayes.Storage;
import org.example.ldpbayes.testing.FakeAggregator;
import org.example.ldpbayes.testing.MemoryStorage;

/** The client as a Java app calls it, with a storage of its own: the arguments are a campaign's document and a folder. */
public final class FromJava {
    /** Gives everything on to another one. */
    static final class OwnStorage implements Storage {
        private final Storage inner = new MemoryStorage();

        @Override
        public String read(String name) {
            return inner.read(name);
        }

        @Override
        public void change(String name, Function1<? super String, String> change) {
            inner.change(name, change);
        }

        @Override
        public void clear() {
            inner.clear();
        }

        @Override
        public <T> T exclusive(long wait, Function0<? extends T> work) {
            return inner.exclusive(wait, work);
        }
    }

    private static String answered(Device device, String id) {
        DeviceCampaign campaign = device.campaign("https://collect.example", id, 2.0);
        NextStep step = campaign.nextStep();
        if (step instanceof NextStep.Ask) step = campaign.decide(true, 5_000);
        if (step == NextStep.Contribute.INSTANCE) campaign.contribute(Collections.singletonMap("colour", "green"), "no");
        device.start();
        boolean delivered = device.runOnce(5_000);
        device.close();
        return ((NextStep.Nothing) campaign.nextStep()).getReason() + " " + delivered;
    }

    public static void main(String[] arguments) throws Exception {
        FakeAggregator aggregator = new FakeAggregator();
        Campaign campaign = aggregator.publish(Files.readAllBytes(Paths.get(arguments[0])));
        Policy policy = Policy.ofMillis(0);
        for (Storage storage : new Storage[] {new OwnStorage(), new FileStorage(Paths.get(arguments[1]).toFile())}) {
            System.out.println(answered(new Device(storage, 4.0, policy, aggregator), campaign.getId()));
        }
        System.out.println(aggregator.getUploads().size());
    }
}

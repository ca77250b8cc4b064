import com.alibaba.otter.canal.connector.core.spi.ProxyCanalMQProducer;
import com.alibaba.otter.canal.connector.kafka.producer.CanalKafkaProducer;
import com.alibaba.otter.canal.instance.spring.SpringCanalInstanceGenerator;
import com.alibaba.otter.canal.server.CanalMQStarter;
import com.alibaba.otter.canal.server.embedded.CanalServerWithEmbedded;
import java.io.InputStream;
import java.util.Properties;

/**
 * Starts Canal's server with one destination and its Kafka producer, in the order of its deployer, which Maven Central has up to 1.1.4 only.
 * The classpath has canal.properties, spring/file-instance.xml and the destination's folder. Argument: the destination.
 */
public class CanalServer {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (InputStream in = CanalServer.class.getResourceAsStream("/canal.properties")) {
            settings.load(in);
        }
        if ("true".equals(settings.getProperty("canal.mq.flatMessage"))) {
            System.setProperty("canal.instance.memory.rawEntry", "false");
        }
        ProxyCanalMQProducer producer = new ProxyCanalMQProducer(new CanalKafkaProducer());
        producer.init(settings);
        SpringCanalInstanceGenerator instances = new SpringCanalInstanceGenerator();
        instances.setSpringXml("classpath:spring/file-instance.xml");
        CanalServerWithEmbedded server = CanalServerWithEmbedded.instance();
        server.setCanalInstanceGenerator(instances);
        server.start();
        server.start(arguments[0]);
        new CanalMQStarter(producer).start(arguments[0]);
        Thread.currentThread().join();
    }
}
